#ifndef WEFT_TLS_HPP
#define WEFT_TLS_HPP
// Opt-in: connections secured by TLS 1.3. Nothing else includes this header; a program that does links with -lssl -lcrypto.

#include <weft/cluster/tls.hpp>

#endif
