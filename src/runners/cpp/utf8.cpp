#include "utf8.hpp"

#include <array>
#include <cctype>

namespace transect {

namespace {

// By the first byte of a character: how long it is, and in which range the second one lies
// (The Unicode Standard, table 3-7).
struct Form {
    unsigned char first, last;
    std::size_t length;
    unsigned char least, most;
};

constexpr std::array<Form, 9> forms{{
    {0x00, 0x7F, 1, 0x80, 0xBF},
    {0xC2, 0xDF, 2, 0x80, 0xBF},
    {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF},
    {0xF4, 0xF4, 4, 0x80, 0x8F},
}};

// The length of the character at the beginning of a text, 0 when there is none.
std::size_t first_character(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (const auto& form : forms) {
        if (text.empty() || byte(0) < form.first || byte(0) > form.last) continue;
        if (text.size() < form.length) return 0;
        if (form.length > 1 && (byte(1) < form.least || byte(1) > form.most)) return 0;
        for (std::size_t i = 2; i < form.length; ++i) {
            if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
        }
        return form.length;
    }
    return 0;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const auto length = first_character(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

std::string as_line(std::string_view text) {
    std::string line;
    while (!text.empty()) {
        const auto length = first_character(text);
        const bool space = std::isspace(static_cast<unsigned char>(text[0])) != 0;
        if (length == 0 || space) {
            line += space ? ' ' : '?';
            text.remove_prefix(1);
        } else {
            line += text.substr(0, length);
            text.remove_prefix(length);
        }
    }
    return line;
}

}  // namespace transect
