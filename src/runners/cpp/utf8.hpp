#pragma once

#include <string>
#include <string_view>

namespace transect {

// Whether it is UTF-8 throughout, shortest forms and no surrogates.
bool is_utf8(std::string_view text) noexcept;

// The text as one line of UTF-8: other bytes, as a path may have, become question marks.
std::string as_line(std::string_view text);

}  // namespace transect
