// The template language by itself. What Jinja2 gives for hundreds of expressions is compared in
// tests/oracle/templates.py; here are the rules that a machine without Jinja2 must keep too, the messages,
// the limits.
#include <gtest/gtest.h>

#include <chrono>

#include "text/template/program.h"

namespace spillway {
namespace jinja {
namespace {

using Json = nlohmann::ordered_json;

std::string render(std::string_view source, const Json& variables = Json::object()) {
  const auto program = Program::parse(source);
  if (!program) return "PARSE " + program.error().message;
  const auto text = program->render(variables);
  return text ? *text : "ERROR " + text.error().message;
}

// Expected texts were printed by Jinja2 3.1.6.
TEST(Template, WritesPythonsForms) {
  EXPECT_EQ(render("{{ [1.0, 1e16, 0.00001, true, none, 'it\\'s', (1,), {'a': []}] }}"),
            "[1.0, 1e+16, 1e-05, True, None, \"it's\", (1,), {'a': []}]");
  EXPECT_EQ(render("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 ** 2 }}"), "-4 2 3.5 64");
  EXPECT_EQ(render("{{ 'ΑΣ straße'|upper }} {{ 'ΑΣ ΣΑ'|lower }} {{ u[1:-1][::-1] }}", {{"u", "aé日b"}}),
            "ΑΣ STRASSE ας σα 日é");
  EXPECT_EQ(render("{{ x|tojson }}", {{"x", Json::parse(R"({"b":[1,2.0,"é<"],"a":18446744073709551615})")}}),
            "{\"b\": [1, 2.0, \"é<\"], \"a\": 18446744073709551615}");
}

TEST(Template, TrimsAroundTags) {
  EXPECT_EQ(render("  {% if true %}\n  a\n  {% endif %}\nb\n"), "  a\nb");
  EXPECT_EQ(render("x\n  {%- if true -%}\n a \n{%+ endif +%}\ny"), "xa \n\ny");
  EXPECT_EQ(render("{# c #}\n {{- 1 }}{% raw %}{{ x }}{% endraw %}"), "1{{ x }}");
}

TEST(Template, ScopesAsJinja) {
  EXPECT_EQ(render("{% set y = 0 %}{% for x in [1, 2] %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}"),
            "120");
  EXPECT_EQ(
      render("{% set n = namespace(t=0) %}{% for x in [1, 2] %}{% set n.t = n.t + x %}{% endfor %}{{ n.t }}"),
      "3");
  EXPECT_EQ(render("{% macro m() %}{{ y }}{% endmacro %}{% set y = 1 %}{{ m() }}"), "1");
}

TEST(Template, LoopControlsAndGeneration) {
  EXPECT_EQ(render("{%- for x in [1, 2, 3, 4] %}{%- if x == 2 %}{% continue %}{% elif x == 4 %}{%- break "
                   "%}{% endif %}{{ x }}{% endfor %}"),
            "13");
  EXPECT_EQ(render("a{% generation %}text{{ 1 }}{% endgeneration %}b"), "atext1b");
}

TEST(Template, MessagesNameThePlace) {
  EXPECT_EQ(render("a\n  {{ x.y }}"), "ERROR line 2, column 7: 'x' is undefined");
  EXPECT_EQ(render("{{ d.y.z }}", {{"d", Json::object()}}),
            "ERROR line 1, column 7: 'dict object' has no attribute 'y'");
  EXPECT_EQ(render("{% if x %}\n{{ 1"), "PARSE line 2, column 1: the expression {{ has no end }}");
  EXPECT_EQ(render("\n{% nonsense %}"), "PARSE line 2, column 4: unknown tag 'nonsense'");
  EXPECT_EQ(render("{% for x in y %}"),
            "PARSE line 1, column 17: the template ends, but 'for' of line 1 is still open");
  EXPECT_EQ(render("{{ 'a'|zzz }}"), "ERROR line 1, column 8: there is no filter named 'zzz'");
}

TEST(Template, OtherTemplatesAreRefused) {
  for (const auto* tag : {"include 'x'", "import 'x' as y", "extends 'x'", "from 'x' import y", "block b"}) {
    const auto program = Program::parse(fmt::format("{{% {} %}}", tag));
    ASSERT_FALSE(program) << tag;
    EXPECT_EQ(program.error().kind, Error::Kind::kUnsupported) << tag;
  }
}

TEST(Template, RaiseHasItsOwnKindAndWords) {
  const auto text = Program::parse("{{ raise_exception('roles must alternate') }}")->render(Json::object());
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, Error::Kind::kRefused);
  EXPECT_EQ(text.error().message, "roles must alternate");
}

TEST(Template, TimeIsGiven) {
  const auto program =
      *Program::parse("{{ strftime_now('%d %b %Y %H:%M') if strftime_now is defined else 'none' }}");
  EXPECT_EQ(*program.render(Json::object()), "none");
  EXPECT_EQ(*program.render(Json::object(), std::chrono::local_seconds(std::chrono::seconds(1753967045))),
            "31 Jul 2025 13:04");
}

TEST(Template, SandboxHidesWhatChangesContainers) {
  EXPECT_EQ(render("{{ [].append(1) }}"),
            "ERROR line 1, column 13: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(render("{{ {}.update({}) }}"),
            "ERROR line 1, column 13: access to attribute 'update' of 'dict' object is unsafe.");
}

// Each would run, grow or nest without end. All must end with an error, quickly and on an ordinary stack.
TEST(Template, HostileTemplatesEnd) {
  const auto nested = [](std::string_view open, std::string_view middle, std::string_view close, size_t n) {
    std::string text = "{{ ";
    for (size_t i = 0; i < n; ++i) text += open;
    text += middle;
    for (size_t i = 0; i < n; ++i) text += close;
    return text + " }}";
  };
  std::string blocks, dots = "{{ x", minus = "{{ ", conditions = "{{ 1";
  for (int i = 0; i < 5000; ++i)
    blocks += "{% if 1 %}", dots += ".x", minus += "- ", conditions += " if 1 else 1";
  const std::string hostile[] = {
      "{{ 'a' * 10**9 }}",
      "{{ [0] * 10**12 }}",
      "{{ range(10**12)|list }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(n) %}{{ f(n + 1) ~ f(n + 1) }}{% endmacro %}{{ f(0) }}",
      "{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% "
      "endfor %}",
      "{% set n = namespace(s='x' * 1000) %}{% for i in range(30) %}{% set n.s = n.s|replace('x', n.s) %}{% "
      "endfor %}",
      "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = n.l + n.l %}{% endfor %}",
      "{% set n = namespace(l=[]) %}{% for i in range(50000) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}",
      "{% set n = namespace(l=[]) %}{% for i in range(50000) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l == "
      "n.l }}{{ n.l|tojson }}",
      // Little memory, and 2^60 values to compare, to sort by and to look up.
      "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = "
      "[n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
      "{% set n = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}{% set n.a = (n.a, n.a) %}{% set n.b = "
      "(n.b, n.b) %}{% endfor %}{{ [n.a, n.b]|sort }}",
      "{% set n = namespace(a=(1,)) %}{% for i in range(60) %}{% set n.a = (n.a, n.a) %}{% endfor %}{{ {n.a: "
      "1} }}",
      "{% set n = namespace() %}{% set n.n = n %}{{ n }}",
      "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
      "{{ '%999999999d' % 1 }}",
      "{{ '{:999999999}'.format(1) }}",
      "{{ 'a'.center(10**12) }}",
      "{{ 'a\tb'.expandtabs(10**9) }}",
      "{{ 'x'|indent(10**9) }}",
      "{{ [1]|batch(10**9, 0)|list }}",
      "{{ [1]|slice(10**9)|list }}",
      "{{ 10 ** 100 }}",
      "{{ 99999999999999999999999999999999999999999999 }}",
      "{{ 2.0 ** 9999 }}",
      "{% set n = namespace(l=[]) %}{% for i in range(100000) %}{% set n.l = ['a' * 100000, n.l] %}{% endfor "
      "%}",
      nested("(", "1", ")", 100000),
      nested("[", "", "]", 100000),
      nested("{1:", "1", "}", 50000),
      nested("not ", "1", "", 100000),
      nested("x[", "1", "]", 100000),
      nested("f(", "1", ")", 100000),
      blocks,
      dots + " }}",
      minus + "1 }}",
      conditions + " }}",
      std::string((1 << 20) + 1, 'x'),
  };
  for (const auto& source : hostile) {
    const auto before = std::chrono::steady_clock::now();
    const std::string out = render(source);
    const auto took = std::chrono::steady_clock::now() - before;
    EXPECT_TRUE(out.starts_with("ERROR") || out.starts_with("PARSE"))
        << source.substr(0, 100) << " gave " << out.substr(0, 100);
    // Steps are bounded, not time; 20 s is far above what they take, even under a sanitizer.
    EXPECT_LT(took, std::chrono::seconds(60)) << source.substr(0, 100);
  }
}

// Long but flat templates are fine: chains are not nesting.
TEST(Template, LongChainsAreNoNesting) {
  std::string sum = "{{ 0", text = "{{ ''", either = "{{ false";
  for (int i = 0; i < 20000; ++i) sum += " + 1", text += " ~ 'a'", either += " or false";
  EXPECT_EQ(render(sum + " }}"), "20000");
  EXPECT_EQ(render(text + " }}").size(), 20000u);
  EXPECT_EQ(render(either + " }}"), "False");
  std::string chain = "{% if false %}";
  for (int i = 0; i < 2000; ++i) chain += "{% elif false %}";
  EXPECT_EQ(render(chain + "{% else %}x{% endif %}"), "x");
}

TEST(Template, DataIsChecked) {
  EXPECT_EQ(render("{{ x }}", {{"x", "\xFF"}}), "ERROR a string given to the template is not valid UTF-8");
  EXPECT_EQ(render("\xC0\x80"), "PARSE the template is not valid UTF-8");
  Json deep = Json::array();
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  EXPECT_TRUE(render("{{ x }}", {{"x", deep}}).starts_with("ERROR"));
}

}  // namespace
}  // namespace jinja
}  // namespace spillway
