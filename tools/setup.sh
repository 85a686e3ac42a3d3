# Sourced by the scripts beside it. `configure FOLDER OPTION...` sets up a meson build there, or again. `require PACKAGE...` makes sure that each Debian package's content is there: what is missing is installed
# by apt; without apt, or without the right to use it, the missing packages are named, and the script ends.

# What shows that a package's content is there: a command, a header that the compiler finds, a path, or one of clang's own libraries.
declare -A shown_by=(
  [g++]=g++ [clang]=clang++ [libclang-rt-dev]=libclang_rt.tsan [meson]=meson [ninja-build]=ninja [cmake]=cmake [pkgconf]=pkg-config [python3]=python3 [ccache]=ccache
  [libxtensor-dev]=xtensor/xtensor.hpp [libasio-dev]=asio.hpp [nlohmann-json3-dev]=nlohmann/json.hpp [libssl-dev]=openssl/ssl.h
  [libcli11-dev]=CLI/CLI.hpp [doctest-dev]=doctest/doctest.h [catch2]=/usr/include/catch2 [libgtest-dev]=gtest/gtest.h [libdnnl-dev]=dnnl.hpp [dataset-fashion-mnist]=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
)

present() {
  case ${shown_by[$1]} in
    *.h*) echo "#include <${shown_by[$1]}>" | g++ -std=c++17 -M -x c++ - >/dev/null 2>&1 ;;
    /*) [[ -e ${shown_by[$1]} ]] ;;
    libclang_rt.*) compgen -G "$(clang++ -print-resource-dir 2>/dev/null)/lib/linux/${shown_by[$1]}-*.a" >/dev/null ;;
    *) command -v "${shown_by[$1]}" >/dev/null ;;
  esac
}

missing() {
  local package
  for package; do present "$package" || echo "$package"; done
}

require() {
  local wanted sudo=()
  mapfile -t wanted < <(missing "$@")
  (( ${#wanted[@]} )) || return 0
  if command -v apt-get >/dev/null; then
    (( EUID )) && sudo=(sudo)
    echo "installing ${wanted[*]}"
    { "${sudo[@]}" apt-get update -qq && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${wanted[@]}"; } </dev/null >&2
    mapfile -t wanted < <(missing "${wanted[@]}")
    (( ${#wanted[@]} )) || return 0
  fi
  echo "weft needs ${wanted[*]} (names of the Debian packages); please install them" >&2
  exit 1
}

configure() {
  local again=()
  [[ -f $1/build.ninja ]] && again=(--reconfigure)
  meson setup "${again[@]}" "$@"
}
