// A conversation survives the loss of its device, where going on with the CPU was asked for.
#include <gtest/gtest.h>

#include "cli/conversation.h"
#include "cli/model_text.h"
#include "demo/recorded_routes.h"
#include "engine/engine.h"

namespace spillway {
namespace {

TEST(Conversation, GoesOnAfterTheDeviceIsLost) {
  engine::Options options{.path = kModels + "demo.gguf", .threads = 2, .context = 512};
  options.device.device = "none";
  const auto answers = [](const engine::Options& o, bool loses) {
    const auto engine = engine::Engine::load(o);
    EXPECT_TRUE(engine) << engine.error().message;
    const auto tokenizer = cli::load_tokenizer("the model", (*engine)->metadata(), (*engine)->vocabulary());
    const auto chat_template = cli::load_chat_template((*engine)->metadata(), (*tokenizer)->vocabulary(), "");
    cli::Conversation conversation(**engine, **tokenizer, **chat_template, {.temperature = 0},
                                   {.max_tokens = 12});
    const auto emit = [](const std::string&) { return true; };
    std::vector<std::string> texts;
    bool lost = false;
    for (const char* message : {"Hello", "Who are you?", "Tell me of the sea."}) {
      auto answer = conversation.ask(message, emit);
      if (!answer) {
        EXPECT_EQ(answer.error().kind, Error::Kind::kDeviceLost) << answer.error().message;
        lost = true;
        answer = conversation.ask(message, emit);  // the person asks again
      }
      EXPECT_TRUE(answer);
      texts.push_back(answer->text);
    }
    EXPECT_EQ(lost, loses);
    return texts;
  };
  const auto expected = answers(options, false);
  options.device.device = "host";
  options.device.experts_on_host = true;
  options.device.continue_on_host = true;
  EXPECT_EQ(answers(options, false), expected);
  options.device.host.faults.lose_after_operations = 3000;  // within the second answer
  EXPECT_EQ(answers(options, true), expected);
}

}  // namespace
}  // namespace spillway
