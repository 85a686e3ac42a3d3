// Graph to session: one of the files that together hold the bodies.
#define WEFT_IMPLEMENTATION_BASE
#include <weft/session.hpp>
#include <weft/simulate.hpp>
#include <weft/testing.hpp>
