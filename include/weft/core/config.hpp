#ifndef WEFT_CORE_CONFIG_HPP
#define WEFT_CORE_CONFIG_HPP
// The build switches. A program that defines WEFT_SEPARATE_COMPILATION sees declarations only; its one file that also
// defines WEFT_IMPLEMENTATION holds the bodies. No switch changes the layout of a type.

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

// Which bodies this file sees. The program's one implementation file may be split to compile in parallel: WEFT_IMPLEMENTATION_BASE (graph to session),
// WEFT_IMPLEMENTATION_KERNELS (include a family's header, or all), WEFT_IMPLEMENTATION_FORMAT, WEFT_IMPLEMENTATION_CLUSTER and WEFT_IMPLEMENTATION_TRAIN together are
// WEFT_IMPLEMENTATION.
#if !defined(WEFT_SEPARATE_COMPILATION) || defined(WEFT_IMPLEMENTATION)
#define WEFT_HAS_BODIES 1
#define WEFT_HAS_KERNEL_BODIES 1
#define WEFT_HAS_FORMAT_BODIES 1
#define WEFT_HAS_CLUSTER_BODIES 1
#define WEFT_HAS_TRAIN_BODIES 1
#else
#if defined(WEFT_IMPLEMENTATION_BASE)
#define WEFT_HAS_BODIES 1
#else
#define WEFT_HAS_BODIES 0
#endif
#if defined(WEFT_IMPLEMENTATION_KERNELS)
#define WEFT_HAS_KERNEL_BODIES 1
#else
#define WEFT_HAS_KERNEL_BODIES 0
#endif
#if defined(WEFT_IMPLEMENTATION_FORMAT)
#define WEFT_HAS_FORMAT_BODIES 1
#else
#define WEFT_HAS_FORMAT_BODIES 0
#endif
#if defined(WEFT_IMPLEMENTATION_CLUSTER)
#define WEFT_HAS_CLUSTER_BODIES 1
#else
#define WEFT_HAS_CLUSTER_BODIES 0
#endif
#if defined(WEFT_IMPLEMENTATION_TRAIN)
#define WEFT_HAS_TRAIN_BODIES 1
#else
#define WEFT_HAS_TRAIN_BODIES 0
#endif
#endif

// Stands before the declaration of a virtual function whose body follows its class. Without it, a file that holds the bodies would emit the class's table and all that can be reached from
// there, whether the program uses the class or not.
#if defined(WEFT_SEPARATE_COMPILATION)
#define WEFT_INLINE
#else
#define WEFT_INLINE inline
#endif

// Stands before the definition (never the declaration) of a function whose body is hidden under separate compilation, be it free or a member. An implementation file emits it even
// when it does not call it; the linker keeps one copy of what several files emit.
#if !defined(WEFT_SEPARATE_COMPILATION)
#define WEFT_DECL inline
#elif WEFT_HAS_BODIES || WEFT_HAS_KERNEL_BODIES || WEFT_HAS_FORMAT_BODIES || WEFT_HAS_CLUSTER_BODIES || WEFT_HAS_TRAIN_BODIES
#if defined(__clang__)
// Clang emits only one of the two bodies of a constructor that is `used`.
#if defined(WEFT_IMPLEMENTATION)
#define WEFT_DECL
#else
#define WEFT_DECL __attribute__((weak))
#endif
#elif defined(__GNUC__)
#define WEFT_DECL __attribute__((used)) inline
#else
#define WEFT_DECL
#endif
#else
#define WEFT_DECL
#endif

#endif
