#ifndef CONCLAVE_COMMON_TEXT_UTF8_H_
#define CONCLAVE_COMMON_TEXT_UTF8_H_

#include <string>
#include <string_view>

namespace conclave {

bool IsValidUtf8(std::string_view bytes);

// The same text with U+FFFD for each byte that belongs to no valid sequence (Unicode, table 3-7).
std::string ToValidUtf8(std::string_view bytes);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TEXT_UTF8_H_
