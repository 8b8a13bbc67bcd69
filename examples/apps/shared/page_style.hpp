// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The attune authors
//
// How the pages look that the programs write: one column of text, tables, figures; light and dark.
#pragma once

namespace apps {

/// The contents of a <style> element; a page adds what it alone has.
extern char const* const page_style;

}  // namespace apps
