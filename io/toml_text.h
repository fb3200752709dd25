// Values as TOML text that parses to the same value, bit for bit.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace concertina {

std::string to_toml(bool value);
std::string to_toml(std::int64_t value);
std::string to_toml(int value);
std::string to_toml(double value);
std::string to_toml(const std::string& value);
std::string to_toml(const std::vector<std::string>& values);
std::string to_toml(const std::vector<std::int64_t>& values);
/// A list of one number is written as that number, which parses as a list of one.
std::string to_toml(const std::vector<double>& values);
std::string to_toml(const std::array<double, 2>& values);

}  // namespace concertina
