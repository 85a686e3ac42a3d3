// expect: weft: this type is not a dtype; use float, double, bool, std::string, weft::half, weft::bfloat16 or a <cstdint> integer such as std::int64_t
#include "tensors.hpp"

auto y = placeholder<char>();
