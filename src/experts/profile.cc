#include "experts/profile.h"

#include <utility>

namespace spillway {
namespace experts {

namespace {

template <class Profile, class Q>
std::array<std::pair<std::string_view, Q*>, 13> quantities_of(Profile& p) {
  return {{{"device_gb_s", &p.device_gb_s},
           {"dram_gb_s", &p.dram_gb_s},
           {"cpu_gb_s", &p.cpu_gb_s},
           {"link_gb_s", &p.link_gb_s},
           {"cpu_contended_gb_s", &p.cpu_contended_gb_s},
           {"link_contended_gb_s", &p.link_contended_gb_s},
           {"cpu_tokens", &p.cpu_tokens},
           {"device_tokens", &p.device_tokens},
           {"step_us", &p.step_us},
           {"layer_us", &p.layer_us},
           {"cpu_start_us", &p.cpu_start_us},
           {"copy_us", &p.copy_us},
           {"device_expert_us", &p.device_expert_us}}};
}

}  // namespace

std::array<std::pair<std::string_view, Quantity*>, 13> HardwareProfile::quantities() {
  return quantities_of<HardwareProfile, Quantity>(*this);
}

std::array<std::pair<std::string_view, const Quantity*>, 13> HardwareProfile::quantities() const {
  return quantities_of<const HardwareProfile, const Quantity>(*this);
}

Result<void> HardwareProfile::check() const {
  constexpr double kMost = 1e9;
  const std::pair<std::string_view, double> positive[] = {
      {"device_gb_s", device_gb_s.value}, {"dram_gb_s", dram_gb_s.value},
      {"cpu_gb_s", cpu_gb_s.value},       {"link_gb_s", link_gb_s.value},
      {"cpu_tokens", cpu_tokens.value},   {"device_tokens", device_tokens.value},
  };
  for (const auto& [key, value] : positive)
    if (!(value > 1e-6 && value < kMost))
      return invalid("hardware profile '{}': {} is {}; a number above 1e-6 and below 1e9 is needed", name,
                     key, value);
  const std::pair<std::string_view, double> not_negative[] = {
      {"cpu_contended_gb_s", cpu_contended_gb_s.value},
      {"link_contended_gb_s", link_contended_gb_s.value},
      {"step_us", step_us.value},
      {"layer_us", layer_us.value},
      {"cpu_start_us", cpu_start_us.value},
      {"copy_us", copy_us.value},
      {"device_expert_us", device_expert_us.value},
  };
  for (const auto& [key, value] : not_negative)
    if (!(value >= 0.0 && value < kMost))
      return invalid("hardware profile '{}': {} is {}; a number from 0 and below 1e9 is needed", name, key,
                     value);
  for (const Quantity* contended : {&cpu_contended_gb_s, &link_contended_gb_s})
    if (contended->value != 0.0 && contended->value <= 1e-6)
      return invalid("hardware profile '{}': a contended rate is {}; 0 or a number above 1e-6 is needed",
                     name, contended->value);
  if (cpu_contended_gb_s.value > cpu_gb_s.value)
    return invalid("hardware profile '{}': cpu_contended_gb_s {} is above cpu_gb_s {}", name,
                   cpu_contended_gb_s.value, cpu_gb_s.value);
  if (link_contended_gb_s.value > link_gb_s.value)
    return invalid("hardware profile '{}': link_contended_gb_s {} is above link_gb_s {}", name,
                   link_contended_gb_s.value, link_gb_s.value);
  return {};
}

HardwareProfile default_profile() {
  HardwareProfile p;
  p.name = "default";
  p.source = "a middling desktop; nothing measured";
  p.device_gb_s = {300.0};
  p.dram_gb_s = {42.0};
  p.cpu_gb_s = {36.0};
  p.link_gb_s = {12.0};
  p.cpu_tokens = {4.0};
  p.device_tokens = {16.0};
  p.step_us = {1000.0};
  p.layer_us = {20.0};
  p.cpu_start_us = {10.0};
  p.copy_us = {5.0};
  p.device_expert_us = {2.0};
  return p;
}

}  // namespace experts
}  // namespace spillway
