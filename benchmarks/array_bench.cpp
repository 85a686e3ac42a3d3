// How elements are moved beside a plain copy of as many bytes, one thread each, in the same run: prints JSON lines
// {"work", "unit", "weft", "peer", "ratio"}, where ratio says how weft compares with memcpy (1: as fast).

#undef WEFT_SEPARATE_COMPILATION  // loops are compiled where they are measured
#include <weft/kernels/array_select.hpp>

#include "measure.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace d = weft::detail;

namespace {

constexpr std::size_t most_bytes = 16u << 20;

// Memory that begins at a cache line, as that of tensors does.
struct aligned_bytes {
  std::vector<std::byte> all = std::vector<std::byte>(most_bytes + 64, std::byte{1});
  std::byte* data() { return all.data() + (64 - reinterpret_cast<std::uintptr_t>(all.data()) % 64) % 64; }
};
struct buffers {
  aligned_bytes from, to, peer, copied;
};

void beside_copy(buffers& data, const std::string& what, std::size_t bytes, const work_function& work) {
  report(what, "us", 0, work, [&data, bytes] { std::memcpy(data.copied.data(), data.from.data(), bytes); });
}

// [a, b, c] with the order of the dimensions changed.
void transpose(buffers& data, const std::string& what, std::ptrdiff_t size, const std::int64_t (&extent)[3], const std::int64_t (&perm)[3]) {
  const std::int64_t from[3] = {extent[1] * extent[2], extent[2], 1};
  const std::int64_t to[3] = {extent[perm[1]] * extent[perm[2]], extent[perm[2]], 1};
  d::strided_copy copy;
  for (int i = 0; i < 3; ++i) copy.add(extent[perm[i]], from[perm[i]], to[i]);
  beside_copy(data, "transpose " + what, static_cast<std::size_t>(extent[0] * extent[1] * extent[2] * size), [&data, copy, size] { copy.run({data.from.data(), size, false}, 0, {data.to.data(), size, false}, 0); });
}

void select(buffers& data, std::ptrdiff_t size, const std::string& what) {
  constexpr std::size_t count = 1000 * 1000;
  std::vector<std::byte> flags(count);
  for (std::size_t i = 0; i < count; ++i) flags[i] = static_cast<std::byte>(i * 2654435761U >> 9 & 1U);
  const d::select_row row{reinterpret_cast<const bool*>(flags.data()), data.from.data(), data.peer.data(), 1, 1, 1, data.to.data(), count};
  // Beside a copy that reads and writes as many bytes: three inputs and the result are as much as one and a half copies.
  beside_copy(data, "select " + what, count * (3 * static_cast<std::size_t>(size) + 1) / 2, [row, size] { d::select_elements(row, size, false); });
}

}  // namespace

int main(int, char** argv) {
  use_one_thread(argv);
  buffers data;
  transpose(data, "1000x1000 float", 4, {1, 1000, 1000}, {0, 2, 1});
  transpose(data, "1024x1024 float", 4, {1, 1024, 1024}, {0, 2, 1});
  transpose(data, "64x10x50 float to 64x50x10", 4, {64, 10, 50}, {0, 2, 1});
  transpose(data, "1000x1000 double", 8, {1, 1000, 1000}, {0, 2, 1});
  transpose(data, "2000x2000 half", 2, {1, 2000, 2000}, {0, 2, 1});
  transpose(data, "2000x2000 uint8", 1, {1, 2000, 2000}, {0, 2, 1});
  transpose(data, "32x784x64 float to 32x64x784", 4, {32, 784, 64}, {0, 2, 1});
  transpose(data, "100x100x100 float, 2 1 0", 4, {100, 100, 100}, {2, 1, 0});
  transpose(data, "100x100x100 float, 1 0 2", 4, {100, 100, 100}, {1, 0, 2});
  transpose(data, "32x12544x3 float to 32x3x12544", 4, {32, 12544, 3}, {0, 2, 1});
  select(data, 4, "1M floats");
  select(data, 8, "1M doubles");
  select(data, 1, "1M bools");
}
