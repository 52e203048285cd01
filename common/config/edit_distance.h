#ifndef CONCLAVE_COMMON_CONFIG_EDIT_DISTANCE_H_
#define CONCLAVE_COMMON_CONFIG_EDIT_DISTANCE_H_

#include <cstddef>
#include <string_view>

namespace conclave {

// How many characters to insert, delete or replace to turn one text into the other (Levenshtein).
size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_EDIT_DISTANCE_H_
