// The built-in workloads. All texts were written for this program; they are about different things, since
// experts specialise, and a cache that is warm for one topic may be cold for the next.
#include <algorithm>

#include "tune/bench_text.h"
#include "tune/workload.h"

namespace spillway::tune {
namespace {

constexpr const char* kAssistant = "You are a helpful assistant. Answer briefly and plainly.";

// Short answers, as most of a chat's are.
constexpr uint32_t kChatTokens = 64;
// An edit of a function.
constexpr uint32_t kCodeTokens = 96;
// "Which, when, how many."
constexpr uint32_t kQuestionTokens = 32;
// A page.
constexpr uint32_t kLongTokens = 512;

Conversation conversation(std::string topic, std::string system, const std::vector<const char*>& texts,
                          uint32_t max_tokens) {
  Conversation made{.topic = std::move(topic), .system = std::move(system)};
  for (const char* text : texts) made.turns.push_back({.text = text, .max_tokens = max_tokens});
  return made;
}

std::vector<Conversation> chat() {
  return {
      conversation("travel", kAssistant,
                   {"I have three days in Lisbon in November and I don't like crowds. What should I see?",
                    "It will probably rain on the second day. What would you change?",
                    "And where could I eat near there without a reservation?"},
                   kChatTokens),
      conversation(
          "physics", kAssistant,
          {"Why is the sky blue during the day and red in the evening?",
           "Then why isn't it violet, if shorter waves scatter more?", "Would the same be true on Mars?"},
          kChatTokens),
      conversation(
          "cooking", kAssistant,
          {"My bread is dense and wet inside although the crust is dark. What am I doing wrong?",
           "I bake it at 240 degrees for 25 minutes, without a pan. Which of these should I change first?",
           "Write the corrected recipe as a short list."},
          kChatTokens),
      conversation("letters", kAssistant,
                   {"Write two sentences to my landlord: the heating has been cold since Friday.",
                    "Make it firmer, but still polite, and mention that there is a child in the flat.",
                    "Translate it into German."},
                   kChatTokens),
      conversation(
          "history", kAssistant,
          {"Who built the first railway tunnel under the Thames, and why did it take so long?",
           "What was done differently in the tunnels that came after it?", "Sum that up for a ten-year-old."},
          kChatTokens),
      conversation("arithmetic", kAssistant,
                   {"A tank of 900 litres loses 2 % of its water each day. How much is left after ten days?",
                    "After how many days is it half empty?", "And if I add 5 litres every evening?"},
                   kChatTokens),
  };
}

std::vector<Conversation> code() {
  constexpr const char* kSystem = "You are a careful programmer. Answer with code and at most one sentence.";
  return {
      conversation("python", kSystem,
                   {R"(Here is a function. Make it work for an empty list and give it a docstring.

def spread(values):
    low = values[0]
    high = values[0]
    for value in values[1:]:
        if value < low:
            low = value
        elif value > high:
            high = value
    return high - low
)",
                    "Now let it take any iterable, going through it only once.",
                    "Write three tests for it with pytest, one of them for a generator."},
                   kCodeTokens),
      conversation(
          "c++", kSystem,
          {R"(This leaks when the second open fails. Fix it, with as few changes as possible.

bool copy_file(const char* from, const char* to) {
  FILE* in = fopen(from, "rb");
  if (!in) return false;
  FILE* out = fopen(to, "wb");
  if (!out) return false;
  char buffer[4096];
  size_t n;
  while ((n = fread(buffer, 1, sizeof buffer, in)) > 0) fwrite(buffer, 1, n, out);
  fclose(in);
  fclose(out);
  return true;
}
)",
           "It also says true when the disk is full. Mend that too.",
           "Rename the parameters to source and target, and return an error code instead of a bool."},
          kCodeTokens),
      conversation("sql", kSystem,
                   {R"(Given these tables, list the members who have borrowed nothing this year.

create table member (id integer primary key, name text, joined date);
create table loan (id integer primary key, member_id integer references member(id), item text, taken date,
                   returned date);
)",
                    "Add how many items each of them borrowed last year, most first.",
                    "Which index would help, and why?"},
                   kCodeTokens),
      conversation(
          "shell", kSystem,
          {"Write a POSIX shell function that prints the three largest files below a folder, one a line.",
           "It breaks on names with spaces. Mend it.",
           "Let it take the number of files as a second argument, three if it is missing."},
          kCodeTokens),
  };
}

constexpr const char* kPumpManual = R"(Instructions for the pumping station at Miller's Lock

1. Purpose. The station keeps the water of the upper basin between 1.80 and 2.20 metres. It has two electric pumps of
the same make, called North and South, each able to lift 340 litres a second, and a diesel pump for emergencies that
lifts 210. In ordinary weather one electric pump is enough; which of them runs is changed on the first of each month, so
that both wear alike.

2. Starting a pump. Check that the inlet screen is clear: if the water before the screen stands more than 12 centimetres
higher than behind it, rake the screen first. Open the vent, then the inlet valve by eight turns, and wait until the vent
gives water without bubbles. Close the vent. Only then press the green button. The current rises to 160 amperes and must
fall below 95 within twenty seconds. If it doesn't, press the red button and call the electrician on duty; do not try a
second time.

3. Stopping. Press the red button, wait for the shaft to come to rest, and close the inlet valve. In frost (below minus 4
degrees in the pump room) open the drain of the casing as well, and hang the yellow sign on the green button.

4. High water. When the gauge shows 2.35 metres the bell rings in the lock keeper's house. Start the second electric pump.
If the gauge still rises after thirty minutes, start the diesel pump: fuel cock down, decompression lever up, turn the key
to the second notch for ten seconds, then to the third, and drop the lever when the engine turns freely. One filling of
the tank lasts six hours. The reserve of 400 litres is in the shed behind the weir; the key hangs beside the log book.

5. The log. Every start and stop is entered with the time, the gauge, and initials. Readings are taken at six, at noon, at
six and at midnight. Entries are never erased: what was wrong is struck out once, so that it can still be read, and signed.

6. Maintenance. Grease the bearings after every 200 hours of running, two strokes of the gun each. Change the packing when
it drips more than a drop a second while the nut is tight. The floats of the gauge are cleaned in April and in October.
The diesel is run for fifteen minutes on the second Saturday of each month, whether it is needed or not; in the seven
years since it was installed it has been needed four times.

7. People. Nobody enters the inlet chamber alone, or while a pump can start: take out both fuses and put them into your
pocket. The chamber is measured for gas before the ladder is lowered. Visitors stay behind the red line. The station was
built in 1911, the present pumps are from 1987, and the chief engineer is Mrs Adeyemi, telephone 4417.
)";

Conversation document(const std::string& topic, const std::string& text,
                      const std::vector<const char*>& questions) {
  Conversation made =
      conversation(topic, "Answer from the document alone, in one sentence.", questions, kQuestionTokens);
  made.turns[0].text = "The document:\n\n" + text + "\nThe question: " + made.turns[0].text;
  return made;
}

std::vector<Conversation> documents() {
  return {
      document("manual", kPumpManual,
               {"How far is the inlet valve opened before a pump is started?",
                "What must be done when the current stays above 95 amperes?",
                "How often is the diesel engine run when it is not needed?",
                "At which height of the water does the bell ring, and what is done then?"}),
      document(
          "scrapbook", std::string(bench_text()),
          {"How many lorries did Marta count?", "What did Lord Kelvin's machine do?",
           "Which opening hours does the library have on Saturdays?", "What became of the miller's son?"}),
  };
}

std::vector<Conversation> long_answers() {
  return {
      conversation("story", "",
                   {"Write a story about a lighthouse keeper who finds a letter meant for the one before."},
                   kLongTokens),
      conversation(
          "guide", "",
          {"Explain, step by step and for somebody who has never done it, how to plan and plant a vegetable "
           "garden of twenty square metres."},
          kLongTokens),
      conversation("program", "",
                   {"Write a complete Python program that keeps a list of expenses in a CSV file: add, list, "
                    "sum by month "
                    "and by category, with a help text."},
                   kLongTokens),
  };
}

std::vector<Conversation> users() {
  std::vector<Conversation> all;
  const auto add = [&](const char* topic, const std::vector<const char*>& texts) {
    all.push_back(conversation(topic, kAssistant, texts, kChatTokens));
  };
  add("garden", {"When should I prune an old apple tree?",
                 "It lost a large branch in a storm. Should I treat the wound?"});
  add("bash",
      {"How do I find all files changed in the last hour?", "Leave out those below a folder called build."});
  add("law",
      {"What is the difference between a lease and a licence, roughly?", "Which one is a parking space?"});
  add("music", {"What makes a chord minor?", "Give me four chords for a sad song in A."});
  add("french", {"How do I say that I have been waiting for an hour, in French?", "And in the past?"});
  add("chemistry", {"Why does soap clean?", "Why does it work less well in hard water?"});
  add("business",
      {"Name three ways to lower the returns of an online shop for shoes.", "Which is the cheapest to try?"});
  add("astronomy", {"How do we know the distance of a star?", "What limits that method?"});
  for (uint32_t i = 0; i < all.size(); ++i) all[i].user = i % 4;
  return all;
}

}  // namespace

std::vector<std::string> workload_names() { return {"chat", "code", "document", "long", "users"}; }

Result<Workload> builtin_workload(std::string_view name) {
  Workload workload{.name = std::string(name)};
  if (name == "chat")
    workload.conversations = chat();
  else if (name == "code")
    workload.conversations = code();
  else if (name == "document")
    workload.conversations = documents();
  else if (name == "long")
    workload.conversations = long_answers();
  else if (name == "users")
    workload.conversations = users();
  else
    return fail(Error::Kind::kNotFound, "there is no workload '{}'; there are {}, and files", name,
                fmt::join(workload_names(), ", "));
  return workload;
}

Workload builtin_topics() {
  Workload all{.name = "chat, code and document", .conversations = {}};
  std::vector<Conversation> parts[] = {chat(), code(), documents()};
  for (size_t i = 0; std::ranges::any_of(parts, [&](const auto& part) { return i < part.size(); }); ++i)
    for (std::vector<Conversation>& part : parts)
      if (i < part.size()) all.conversations.push_back(std::move(part[i]));
  return all;
}

}  // namespace spillway::tune
