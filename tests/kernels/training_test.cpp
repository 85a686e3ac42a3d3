#include <weft/kernels/training.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <thread>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
// One update: the variable and its slots before and after, scalars in the order of the op's inputs, `flag` set (update_slots: not set).
struct update {
  std::string op, flag;
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<double>> before;
  std::vector<double> scalars, grad;
  std::vector<std::vector<double>> after;
  std::vector<std::int64_t> indices;
};

// What TensorFlow computes in double.
const update updates[] = {
    {"ApplyAdaMax", "", {}, {{1.8359375}, {-0.05859375}, {0.52734375}}, {0.9, 0.1, 0.9, 0.99, 0.001}, {0.6640625}, {{1.8153802215487267}, {0.013671874999999986}, {0.6640625}}, {}},
    {"ApplyAdadelta", "", {}, {{-0.84375}, {0.12109375}, {0.6796875}}, {0.1, 0.9, 0.001}, {-0.375}, {{-0.75590597205273}, {0.123046875}, {0.6888844824600076}}, {}},
    {"ApplyAdagrad", "", {}, {{1.578125}, {0.94140625}}, {0.1}, {-2.2734375}, {{1.6700990062261487}, {6.10992431640625}}, {}},
    {"ApplyAdagrad", "update_slots", {2, 2}, {{-0.1796875, -0.7421875, -0.609375, -0.84375}, {0.765625, 0.79296875, 0.5078125, 0.99609375}}, {0.1}, {0.5, -0.609375, -1.2109375, 1.21875}, {{-0.23683035714285713, -0.6737559153814994, -0.43944500875926307, -0.9658637367616042}, {0.765625, 0.79296875, 0.5078125, 0.99609375}}, {}},
    {"ApplyAdagradDA", "", {}, {{-2.6015625}, {-0.41015625}, {0.1171875}}, {0.1, 0.05, 0.1}, {2.5625}, {{-0.08100690930112085}, {2.15234375}, {6.68359375}}, {}},
    {"ApplyAdagradV2", "", {}, {{0.71875}, {0.796875}}, {0.1, 0.001}, {0.375}, {{0.6800601252687262}, {0.9375}}, {}},
    {"ApplyAdagradV2", "update_slots", {2, 2}, {{-1.6796875, 1.5078125, 0.890625, -0.5546875}, {0.3828125, 0.55078125, 0.73828125, 0.4609375}}, {0.1, 0.001}, {-1.0625, -1.71875, -1.0859375, 1.6328125}, {{-1.5082386705802024, 1.739092641468585, 1.01686260913643, -0.7948339026333868}, {0.3828125, 0.55078125, 0.73828125, 0.4609375}}, {}},
    {"ApplyAdam", "", {}, {{0.25}, {0.44140625}, {0.17578125}}, {0.9, 0.99, 0.1, 0.9, 0.99, 0.001}, {0.4453125}, {{0.1449431522627628}, {0.441796875}, {0.1760064697265625}}, {}},
    {"ApplyAdam", "use_nesterov", {2, 2}, {{1.140625, 0.8203125, 0.0546875, -2.0078125}, {0.00390625, -0.23046875, 0.390625, 0.38671875}, {0.18359375, 0.98046875, 0.98046875, 0.22265625}}, {0.9, 0.99, 0.1, 0.9, 0.99, 0.001}, {0.8515625, 0.0859375, -0.078125, 0.109375}, {{1.1027683992565107, 0.8375849743727951, 0.024110939213167842, -2.0787866665238646}, {0.08867187499999998, -0.19882812500000002, 0.34375, 0.358984375}, {0.1890093994140625, 0.9707379150390625, 0.97072509765625, 0.22054931640625}}, {}},
    {"ApplyAdamWithAmsgrad", "", {2, 2}, {{-0.0234375, 1.25, -0.7421875, 1.453125}, {0.0234375, -0.08203125, 0.01171875, -0.01171875}, {0.56640625, 0.72265625, 0.73046875, 0.234375}, {0.98046875, 0.8203125, 0.19140625, 0.76171875}}, {0.9, 0.99, 0.1, 0.9, 0.99, 0.001}, {-0.0703125, 0.2421875, -1.2265625, -0.0703125}, {{-0.024856254591038487, 1.255471354428074, -0.7291544158135905, 1.4551367680320186}, {0.014062500000000002, -0.049609375000000004, -0.11210937499999997, -0.017578125}, {0.5607916259765625, 0.7160162353515624, 0.7382086181640625, 0.2320806884765625}, {0.98046875, 0.8203125, 0.7382086181640625, 0.76171875}}, {}},
    {"ApplyAddSign", "", {}, {{0.6171875}, {-0.23046875}}, {0.1, 0.1, 0.5, 0.9}, {0.1953125}, {{0.625}, {-0.187890625}}, {}},
    {"ApplyCenteredRMSProp", "", {}, {{0.9609375}, {-0.078125}, {0.390625}, {-0.4453125}}, {0.1, 0.9, 0.9, 0.001}, {-2.3203125}, {{1.621212876028003}, {-0.3023437499999999}, {0.8899475097656249}, {-0.660275376028003}}, {}},
    {"ApplyFtrl", "", {}, {{-1.34375}, {0.10546875}, {-0.078125}}, {0.1, 0.05, 0.1, -0.5}, {-1.1875}, {{-0.8683046491676534}, {1.515625}, {10.91342220269687}}, {}},
    {"ApplyFtrl", "", {3}, {{-1.1484375, -0.546875, -0.1171875}, {0.13671875, 0.18359375, 0.66796875}, {-0.046875, 0.06640625, -0.41015625}}, {0.1, 0.05, 0.1, -0.25}, {0.1875, -1.8671875, -0.9453125}, {{-0.07558552156232083, -0.15232166944238984, 0.0927074037068482}, {0.171875, 3.66998291015625, 1.56158447265625}, {0.5517951909595746, 2.1887414819513524, -1.1048898998025598}}, {}},
    {"ApplyFtrlV2", "", {}, {{-0.5703125}, {0.32421875}, {0.44140625}}, {0.1, 0.05, 0.1, 0.02, -0.5}, {-1.2421875}, {{-0.2648592016071878}, {1.86724853515625}, {3.722201391398367}}, {}},
    {"ApplyGradientDescent", "", {}, {{-0.375}}, {0.1}, {0.125}, {{-0.3875}}, {}},
    {"ApplyKerasMomentum", "", {}, {{1.2578125}, {0.3515625}}, {0.1, 0.9}, {0.8515625}, {{1.4890625}, {0.23125}}, {}},
    {"ApplyKerasMomentum", "use_nesterov", {2, 2}, {{-1.40625, -0.75, -0.4375, 0.8515625}, {0.76171875, 0.93359375, 0.21484375, 0.73828125}}, {0.1, 0.9}, {0.5859375, 0.296875, -0.109375, -0.8671875}, {{-0.9005859374999999, -0.05019531249999998, -0.2426953125, 1.6143359375000002}, {0.626953125, 0.810546875, 0.204296875, 0.751171875}}, {}},
    {"ApplyMomentum", "", {}, {{0.078125}, {0.6953125}}, {0.1, 0.9}, {0.328125}, {{-0.017265625000000007}, {0.9539062500000001}}, {}},
    {"ApplyMomentum", "use_nesterov", {2, 2}, {{0.6953125, -1.921875, 0.5078125, -0.1640625}, {0.734375, 0.7265625, 0.5234375, 0.578125}}, {0.1, 0.9}, {1.0390625, 1.4765625, 0.703125, 0}, {{0.43840625, -2.2612734375, 0.3318203125, -0.210890625}, {1.7000000000000002, 2.13046875, 1.17421875, 0.5203125000000001}}, {}},
    {"ApplyPowerSign", "", {}, {{-0.03125}, {0.14453125}}, {0.1, 1.25, 0.5, 0.9}, {-0.671875}, {{0.004712877228619662}, {0.06289062500000003}}, {}},
    {"ApplyProximalAdagrad", "", {}, {{-0.0625}, {0.140625}}, {0.1, 0.05, 0.1}, {0.7421875}, {{-0.1440092957470351}, {0.69146728515625}}, {}},
    {"ApplyProximalGradientDescent", "", {}, {{-1.578125}}, {0.1, 0.05, 0.1}, {1.953125}, {{-1.7509282178217822}}, {}},
    {"ApplyRMSProp", "", {2, 2}, {{-1.359375, -0.6484375, 1.015625, 1.3203125}, {0.1640625, 0.70703125, 0.87109375, 0.14453125}, {0.359375, 0.1640625, 0.296875, -0.32421875}}, {0.1, 0.9, 0.9, 0.001}, {-0.578125, 1.34375, 2.484375, -0.9375}, {{-1.5473273491554802, -0.9446769902613557, 0.5386339929018022, 1.812455158573241}, {0.1810791015625, 0.81689453125, 1.4011962890624998, 0.21796875}, {0.18795234915548018, 0.29623949026135565, 0.47699100709819775, -0.49214265857324085}}, {}},
    {"SparseApplyAdagrad", "", {4, 2}, {{-0.21875, -0.6171875, -0.1875, -1.03125, 0.125, -0.6875, -1.1875, 0.4296875}, {0.53515625, 0.93359375, 0.59375, 0.96875, 0.15625, 0.18359375, 0.97265625, 0.98046875}}, {0.1}, {-0.3203125, 0.3984375, 1.7890625, 2.0625, -0.9375, -0.546875}, {{-0.21875, -0.6171875, -0.07441942107961075, -1.0229864829702295, 0.125, -0.6875, -1.2750750635428678, 0.3395383698231547}, {0.53515625, 0.93359375, 1.57525634765625, 1.42657470703125, 0.15625, 0.18359375, 4.17340087890625, 5.234375}}, {1, 3, 1}},
    {"SparseApplyAdagradDA", "", {4, 2}, {{-1.328125, 0.0859375, 0.7421875, 1.78125, 0.640625, -0.734375, -0.578125, 1.1484375}, {0.1015625, 0.296875, 0.39453125, 0.359375, -0.14453125, 0.2109375, -0.08203125, 0.48828125}, {0.7421875, 0.53125, 0.6796875, 0.5390625, 0.5859375, 0.6875, 0.90625, 0.73046875}}, {0.1, 0.05, 0.1}, {1.9140625, 0.125, 0.34375, -1.765625, -1.140625, -1.6171875}, {{-1.328125, 0.0859375, -0.0468596023354417, 0.06047729769392931, 0.640625, -0.734375, -0.020713416232100004, 0.06225094600125623}, {0.1015625, 0.296875, 1.16796875, -1.1328125, -0.14453125, 0.2109375, 0.26171875, -1.27734375}, {0.7421875, 0.53125, 5.64434814453125, 3.16998291015625, 0.5859375, 0.6875, 1.0244140625, 3.847900390625}}, {1, 3, 1}},
    {"SparseApplyFtrl", "", {4, 2}, {{0.78125, 1.6015625, 0.0859375, 1.8125, 0.953125, 0.4140625, 0.4375, 0.1015625}, {0.72265625, 0.83984375, 0.8828125, 0.234375, 0.140625, 0.66796875, 0.70703125, 0.90625}, {0.375, 0.3046875, -0.39453125, -0.07421875, 0.12109375, -0.140625, 0.23828125, 0.23828125}}, {0.1, 0.05, 0.1, -0.5}, {0.046875, -0.109375, -1.984375, 0.1171875, -1.125, 0.703125}, {{0.78125, 1.6015625, 0.10676710670059385, 0, 0.953125, 0.4140625, 0.34232915469933634, -0.030451765577823156}, {0.72265625, 0.83984375, 2.150634765625, 0.74072265625, 0.140625, 0.66796875, 4.644775390625, 0.91998291015625}, {0.375, 0.3046875, -1.6370975970372483, 0.04806490523285817, 0.12109375, -0.140625, -7.496255101282194, 0.34817071484478007}}, {1, 3, 1}},
    {"SparseApplyKerasMomentum", "", {4, 2}, {{-0.484375, 0, -0.96875, 1.5625, 0.4609375, -0.140625, 1.359375, -0.8515625}, {0.24609375, 0.3828125, 0.19921875, 0.70703125, 0.97265625, 0.6640625, 0.66015625, 0.98828125}}, {0.1, 0.9}, {0.546875, 0.3984375, 2.0859375, -1.015625, -0.75, -0.5078125}, {{-0.484375, 0, -0.6569921875, 2.7466015625000004, 0.4609375, -0.140625, 1.744921875, 0.13945312500000007}, {0.24609375, 0.3828125, 0.18714843750000001, 0.5876171875, 0.97265625, 0.6640625, 0.38554687499999996, 0.9910156250000001}}, {1, 3, 1}},
    {"SparseApplyProximalAdagrad", "", {4, 2}, {{0.6640625, 0.921875, -0.703125, -1.453125, 0.3125, -0.4921875, -1.0078125, 0.015625}, {0.5234375, 0.55859375, 0.671875, 0.1953125, 0.20703125, 0.3515625, 0.18359375, 0.9296875}}, {0.1, 0.05, 0.1}, {0.03125, -1.3828125, -0.875, 0.875, 1.25, 0.53125}, {{0.6640625, 0.921875, -0.7675262515642237, -1.367446783102772, 0.3125, -0.4921875, -0.9035959426536221, -0.04737318987608381}, {0.5234375, 0.55859375, 2.2353515625, 2.38970947265625, 0.20703125, 0.3515625, 0.94921875, 1.6953125}}, {1, 3, 1}},
};

tensor_value value_of(kernel_bench& bench, dtype type, const shape& s, const std::vector<double>& from) {
  return bench("Cast", {tensor_value::from<double>(s, from)}, {{"DstT", type}});
}
std::vector<double> numbers_of(kernel_bench& bench, const tensor_value& v) { return elements<double>(bench("Cast", {v}, {{"DstT", dtype::float64}})); }

// Variables of a task, and the inputs of an update of them.
struct trained {
  explicit trained(kernel_bench& b, dtype t) : bench(b), type(t) {}
  tensor_value handle(const std::string& name) const { return bench("VarHandleOp", {}, {{"dtype", type}, {"shape", weft::partial_shape()}, {"shared_name", name}}); }
  void set(const std::string& name, tensor_value v) const { bench("AssignVariableOp", {handle(name), std::move(v)}, {{"dtype", type}}); }
  tensor_value get(const std::string& name) const { return bench("ReadVariableOp", {handle(name)}, {{"dtype", type}}); }
  std::vector<tensor_value> inputs(const update& u, const shape& grad) const {
    std::vector<tensor_value> out;
    std::size_t variable = 0, scalar = 0;
    for (const weft::arg_def& arg : weft::standard_ops().find("Resource" + u.op)->inputs) {
      if (arg.type == dtype::resource) out.push_back(handle("v" + std::to_string(variable++)));
      else if (arg.name == "grad" || arg.name == "delta") out.push_back(value_of(bench, type, grad, u.grad));
      else if (arg.name == "indices") out.push_back(tensor_value::from<std::int64_t>({static_cast<std::int64_t>(u.indices.size())}, u.indices));
      else if (arg.name == "global_step") out.push_back(tensor_value::scalar<std::int64_t>(1));
      else out.push_back(value_of(bench, type, {}, {u.scalars[scalar++]}));
    }
    return out;
  }
  kernel_bench& bench;
  dtype type;
};

void check(const update& u, dtype type, double tolerance) {
  CAPTURE(u.op);
  CAPTURE(weft::to_text(type));
  kernel_bench bench;
  const trained t(bench, type);
  const shape s{u.sizes};
  for (std::size_t i = 0; i < u.before.size(); ++i) t.set("v" + std::to_string(i), value_of(bench, type, s, u.before[i]));
  const tensor_value seen = t.get("v0");
  std::vector<std::int64_t> grad = u.sizes;
  if (!u.indices.empty()) grad[0] = static_cast<std::int64_t>(u.indices.size());
  weft::attr_map attrs;
  if (!u.flag.empty()) attrs[u.flag] = u.flag != "update_slots";
  bench("Resource" + u.op, t.inputs(u, shape(grad)), attrs);
  for (std::size_t i = 0; i < u.after.size(); ++i) {
    CAPTURE(i);
    const auto found = numbers_of(bench, t.get("v" + std::to_string(i)));
    for (std::size_t k = 0; k < found.size(); ++k) CHECK(found[k] == doctest::Approx(u.after[i][k]).epsilon(tolerance));
  }
  // A value that was read stays as it was.
  const auto kept = numbers_of(bench, seen);
  for (std::size_t k = 0; k < kept.size(); ++k) CHECK(kept[k] == doctest::Approx(u.before[0][k]).epsilon(tolerance));
}
}  // namespace

TEST_CASE("optimizer updates: what TensorFlow computes") {
  for (const update& u : updates) {
    check(u, dtype::float64, 1e-12);
    check(u, dtype::float32, 1e-5);
    check(u, dtype::half, 0.02);
    check(u, dtype::bfloat16, 0.15);
  }
}

TEST_CASE("optimizer updates: in place while nobody watches, long arrays, and rows one after the other") {
  kernel_bench bench;
  const trained t(bench, dtype::float32);
  // Several blocks and a rest, and enough for several threads.
  for (const std::int64_t n : {5000, 300001}) {
    std::vector<float> var(static_cast<std::size_t>(n)), accum(var), grad(var);
    for (std::size_t i = 0; i < var.size(); ++i) {
      var[i] = static_cast<float>(i % 1000) * 0.01f;
      accum[i] = 1.f + static_cast<float>(i % 7);
      grad[i] = static_cast<float>(i % 5) - 2.f;
    }
    t.set("var", tensor_value::from<float>({n}, var));
    t.set("accum", tensor_value::from<float>({n}, accum));
    const void* storage = t.get("var").raw_data();
    const auto lr = tensor_value::scalar(0.5f), momentum = tensor_value::scalar(0.25f);
    bench("ResourceApplyMomentum", {t.handle("var"), t.handle("accum"), lr, tensor_value::from<float>({n}, grad), momentum});
    CHECK(t.get("var").raw_data() == storage);
    std::int64_t wrong = 0;
    const auto new_var = elements<float>(t.get("var")), new_accum = elements<float>(t.get("accum"));
    for (std::size_t i = 0; i < var.size(); ++i) {
      const float a = accum[i] * 0.25f + grad[i];
      wrong += new_accum[i] != a || new_var[i] != var[i] - a * 0.5f;
    }
    CHECK(wrong == 0);
  }
  // A row that occurs twice sees its first update.
  t.set("rows", make<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  t.set("slots", make<float>({3, 2}, {0, 0, 0, 0, 0, 0}));
  bench("ResourceSparseApplyMomentum", {t.handle("rows"), t.handle("slots"), tensor_value::scalar(1.f), make<float>({3, 2}, {1, 1, 2, 2, 3, 3}), make<std::int32_t>({3}, {2, 0, 2}), tensor_value::scalar(1.f)});
  CHECK(elements<float>(t.get("slots")) == std::vector<float>{2, 2, 0, 0, 4, 4});
  CHECK(elements<float>(t.get("rows")) == std::vector<float>{-1, 0, 3, 4, 0, 1});
}

TEST_CASE("optimizer updates: errors leave the variables as they were") {
  kernel_bench bench;
  const trained t(bench, dtype::float32);
  const auto one = tensor_value::scalar(1.f), pair = make<float>({2}, {1, 1}), three = make<float>({3}, {1, 1, 1});
  const auto var = t.handle("var"), accum = t.handle("accum");
  CHECK(bench.error("ResourceApplyGradientDescent", {var, one, three}) == "FAILED_PRECONDITION: variable 'var' is not initialized; run its initializer (global_variables_initializer) first");
  t.set("var", make<float>({3}, {1, 2, 3}));
  CHECK(bench.error("ResourceApplyMomentum", {var, accum, one, three, one}) == "FAILED_PRECONDITION: variable 'accum' is not initialized; run its initializer (global_variables_initializer) first");
  t.set("accum", make<float>({3}, {4, 5, 6}));
  t.set("short", make<float>({2}, {4, 5}));
  t.set("scalar", tensor_value::scalar(4.f));
  CHECK(bench.error("ResourceApplyGradientDescent", {var, one, pair}) == "INVALID_ARGUMENT: variable 'var' has shape [3], the gradient has shape [2]; they must be equal");
  CHECK(bench.error("ResourceApplyGradientDescent", {var, pair, three}) == "INVALID_ARGUMENT: 'alpha' must be a scalar, found shape [2]");
  CHECK(bench.error("ResourceApplyMomentum", {var, t.handle("short"), one, three, one}) == "INVALID_ARGUMENT: variable 'var' has shape [3], variable 'short' has shape [2]; they must be equal");
  CHECK(bench.error("ResourceApplyMomentum", {var, var, one, three, one}) == "INVALID_ARGUMENT: variable 'var' is given twice");
  const auto rows = [](std::int32_t a, std::int32_t b) { return make<std::int32_t>({2}, {a, b}); };
  CHECK(bench.error("ResourceSparseApplyAdagrad", {var, accum, one, pair, rows(0, 3)}) == "INVALID_ARGUMENT: indices[1] = 3 is not in [0, 3)");
  CHECK(bench.error("ResourceSparseApplyAdagrad", {var, accum, one, pair, rows(-1, 0)}) == "INVALID_ARGUMENT: indices[0] = -1 is not in [0, 3)");
  CHECK(bench.error("ResourceSparseApplyAdagrad", {var, accum, one, three, rows(0, 1)}) == "INVALID_ARGUMENT: the gradient must have a row for each index, shape [2], found [3]");
  CHECK(bench.error("ResourceSparseApplyAdagrad", {var, accum, one, pair, make<std::int32_t>({1, 2}, {0, 1})}) == "INVALID_ARGUMENT: indices must be a vector, found shape [1,2]");
  CHECK(bench.error("ResourceSparseApplyAdagrad", {t.handle("scalar"), t.handle("scalar"), one, pair, rows(0, 1)}) == "INVALID_ARGUMENT: variable 'scalar' is given twice");
  CHECK(bench.error("ResourceSparseApplyProximalGradientDescent", {t.handle("scalar"), one, one, one, pair, rows(0, 1)}) == "INVALID_ARGUMENT: a scalar variable has no rows to update");
  CHECK(bench.error("ResourceSparseApplyProximalGradientDescent", {var, one, tensor_value::scalar(-1.f), one, pair, rows(0, 1)}) == "INVALID_ARGUMENT: 'l1' must not be negative, found -1.000000");
  CHECK(bench.error("ResourceSparseApplyProximalGradientDescent", {var, tensor_value::scalar(0.f), one, one, pair, rows(0, 1)}) == "INVALID_ARGUMENT: 'alpha' must be positive, found 0.000000");
  CHECK(elements<float>(t.get("var")) == std::vector<float>{1, 2, 3});
  CHECK(elements<float>(t.get("accum")) == std::vector<float>{4, 5, 6});
}

TEST_CASE("optimizer updates: nothing to update") {
  kernel_bench bench;
  const trained t(bench, dtype::float64);
  const auto one = tensor_value::scalar(1.0);
  t.set("empty", tensor_value(dtype::float64, shape{0, 4}));
  t.set("narrow", tensor_value(dtype::float64, shape{3, 0}));
  bench("ResourceApplyGradientDescent", {t.handle("empty"), one, tensor_value(dtype::float64, shape{0, 4})});
  bench("ResourceSparseApplyProximalGradientDescent", {t.handle("narrow"), one, one, one, tensor_value(dtype::float64, shape{2, 0}), make<std::int64_t>({2}, {2, 2})});
  bench("ResourceSparseApplyProximalGradientDescent", {t.handle("empty"), one, one, one, tensor_value(dtype::float64, shape{0, 4}), tensor_value(dtype::int64, shape{0})});
  CHECK(t.get("empty").shape() == shape{0, 4});
}

TEST_CASE("optimizer updates: two that hold the same variables in another order end, and no update is lost") {
  kernel_bench bench;
  const trained t(bench, dtype::float64);
  t.set("a", make<double>({2}, {0, 0}));
  t.set("b", make<double>({2}, {0, 0}));
  // a = a * 0 + b' and the like would hide lost updates: with momentum 1 each call adds its gradient to the slot exactly once.
  const auto zero = tensor_value::scalar(0.0), one = tensor_value::scalar(1.0), grad = make<double>({2}, {1, 1});
  const std::vector<dtype> types{dtype::resource, dtype::resource, dtype::float64, dtype::float64, dtype::float64};
  const weft::node &ab = bench.add("ResourceApplyMomentum", types), &ba = bench.add("ResourceApplyMomentum", types);
  const auto a = t.handle("a"), b = t.handle("b");
  std::thread other([&] {
    for (int i = 0; i < 500; ++i) bench.run(ba, {b, a, zero, grad, one});
  });
  for (int i = 0; i < 500; ++i) bench.run(ab, {a, b, zero, grad, one});
  other.join();
  CHECK(elements<double>(t.get("a")) == std::vector<double>{500, 500});
  CHECK(elements<double>(t.get("b")) == std::vector<double>{500, 500});
}
