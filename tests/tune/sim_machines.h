// Made-up machines and prompts for the tuner's tests.
#pragma once

#include "support/synthetic_routes.h"
#include "tune/micro_batches.h"
#include "tune/sim_lab.h"

namespace spillway::tune {

struct PromptShape {
  experts::SyntheticShape routes{.n_layers = 6, .n_experts = 48, .n_used = 6};
  uint32_t calibration = 4, held_out = 4;  // prompts
  uint32_t prompt_tokens = 128, answer_tokens = 192;
};

// One stream of tokens, cut up: the topics drift, so that prompts differ, but the model is one.
inline std::vector<SimPrompt> sim_prompts(const PromptShape& shape) {
  const uint32_t each = shape.prompt_tokens + shape.answer_tokens, n = shape.calibration + shape.held_out;
  experts::SyntheticShape stream = shape.routes;
  stream.tokens = each * n;
  const experts::Routes routes = synthetic_routes(stream);
  std::vector<SimPrompt> prompts;
  for (uint32_t p = 0; p < n; ++p) {
    // Held-out ones lie between the others.
    const bool held_out = p % 2 == 1 ? p / 2 < shape.held_out : p / 2 >= shape.calibration;
    SimPrompt prompt{.prompt = {.topic = "topic " + std::to_string(p), .held_out = held_out},
                     .prompt_tokens = shape.prompt_tokens};
    prompt.tokens.groups = routes.groups;
    for (uint32_t t = 0; t < each; ++t) append_merged(prompt.tokens, routes, size_t{p} * each + t, 1);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

// A machine like people's, given all of its rates: two contended ones too.
inline experts::HardwareProfile sim_profile(double device, double dram, double cpu, double link) {
  using experts::Quantity;
  experts::HardwareProfile p;
  p.name = "made up";
  p.device_gb_s = {device}, p.dram_gb_s = {dram}, p.cpu_gb_s = {cpu}, p.link_gb_s = {link};
  p.link_contended_gb_s = {link * 0.9};
  p.cpu_contended_gb_s = {std::clamp(dram - link * 0.9, cpu / 8, cpu)};
  p.cpu_tokens = {4}, p.device_tokens = {16};
  p.step_us = {2000}, p.layer_us = {25}, p.cpu_start_us = {12}, p.copy_us = {4}, p.device_expert_us = {1};
  return p;
}

}  // namespace spillway::tune
