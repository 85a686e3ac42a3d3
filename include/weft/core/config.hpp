#ifndef WEFT_CORE_CONFIG_HPP
#define WEFT_CORE_CONFIG_HPP
// The build switches. A program that defines WEFT_SEPARATE_COMPILATION sees declarations only; its one file that also
// defines WEFT_IMPLEMENTATION holds the bodies. No switch changes the layout of a type.

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#if defined(WEFT_SEPARATE_COMPILATION) && !defined(WEFT_IMPLEMENTATION)
#define WEFT_HAS_BODIES 0
#else
#define WEFT_HAS_BODIES 1
#endif

// Functions through which the light layers reach the heavy ones: inline by default, external under separate compilation.
#if defined(WEFT_SEPARATE_COMPILATION)
#define WEFT_DECL
#else
#define WEFT_DECL inline
#endif

#endif
