// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// Macros that other libraries define for everybody. The test `headers` includes attune's headers after them. Not here:
// names of the standard library, which break its headers too.
#pragma once

// complex.h, and the compiler in GNU mode
#undef I
#define I (__extension__ 1.0iF)
#undef linux
#undef unix
#define linux 1
#define unix 1

// windows.h and its like
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define small char
#define near
#define far
#define interface struct
#define hyper long long
#define pascal
#define cdecl
#undef ERROR
#define ERROR 0
#define NO_ERROR 0
#define DIFFERENCE 11
#define IGNORE 0
#define INFINITE 0xffffffff
#define DELETE 0x10000
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define STRICT 1
#define GetObject GetObjectA
#define rad1 0x1

// Qt
#define emit
#define signals public
#define slots
#define forever for (;;)
#define foreach(variable, container) for (variable : container)

// AssertMacros.h of macOS; Unreal Engine; Objective-C
#define check(x) ((void)0)
#define check_noerr(x) ((void)0)
#define check_string(x, message) ((void)0)
#define checkf(x, ...) ((void)0)
#define verify(x) ((void)(x))
#define verify_noerr(x) ((void)(x))
#define verify_action(x, action) ((void)(x))
#define verify_string(x, message) ((void)(x))
#define require(x, label) ((void)(x))
#define require_noerr(x, label) ((void)(x))
#define require_quiet(x, label) ((void)(x))
#define require_action(x, label, action) ((void)(x))
#define require_string(x, label, message) ((void)(x))
#define ensure(x) (!!(x))
#define ensureMsgf(x, ...) (!!(x))
#define TEXT(x) L##x
#define PI 3.14159f
#define UI
#define nil 0
#define Nil 0
#define YES 1
#define NO 0

// X11
#define Bool int
#define Status int
#define True 1
#define False 0
#define None 0L
#define Success 0
#define Always 2
#define Above 0
#define Below 1
#define Complex 0
#define Convex 2
#define Opposite 4
#define Unsorted 0

// sys/param.h, sys/sysmacros.h, the old math.h, termios.h; GLib, PostgreSQL, the kernel
#undef MIN
#undef MAX
#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))
#undef major
#undef minor
#define major(device) ((device) >> 8)
#define minor(device) ((device) & 0xff)
#undef roundup
#define roundup(x, y) ((((x) + ((y) - 1)) / (y)) * (y))
#undef howmany
#define howmany(x, y) (((x) + ((y) - 1)) / (y))
#undef isset
#define isset(a, i) ((a)[(i) / 8] & (1 << ((i) % 8)))
#undef OVERFLOW
#undef UNDERFLOW
#undef DOMAIN
#define DOMAIN 1
#define OVERFLOW 3
#define UNDERFLOW 4
#undef ECHO
#define ECHO 0000010
#undef B0
#define B0 0000000
#undef TRUE
#undef FALSE
#define TRUE 1
#define FALSE 0
#define ABS(a) (((a) < 0) ? -(a) : (a))
#define CLAMP(x, low, high) (((x) > (high)) ? (high) : (((x) < (low)) ? (low) : (x)))
#define Max(x, y) ((x) > (y) ? (x) : (y))
#define Min(x, y) ((x) < (y) ? (x) : (y))
#define Abs(x) ((x) >= 0 ? (x) : -(x))
#define Assert(condition) ((void)(condition))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define container_of(pointer, type, member) ((type*)(pointer))

// Arduino
#define HALF_PI 1.57079f
#define EULER 2.71828f
#define DEFAULT 1
#define INPUT 0
#define OUTPUT 1
#define LOW 0
#define HIGH 1
#define bit(b) (1UL << (b))
#define sq(x) ((x) * (x))
#define radians(degrees) ((degrees) * 0.01745f)
#define degrees(radians) ((radians) * 57.29577f)
#define constrain(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define interrupts() ((void)0)
