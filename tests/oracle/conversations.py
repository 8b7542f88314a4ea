"""The conversations with which every chat template is rendered: with and without system, tools, tool results, thinking,
content parts, unknown roles, broken orders; arguments of calls as objects and as text."""
import json

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city, now.",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "the city’s name"},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {"type": "array", "items": {"type": "integer"}}}, "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "add", "description": "Adds <numbers> & \"more\"",
        "parameters": {"type": "object", "properties": {
            "a": {"type": "number", "description": "first"},
            "b": {"oneOf": [{"type": "integer"}, {"type": "string", "description": "text"}]},
            "o": {"type": "object", "properties": {"deep": {"type": ["string", "null"]},
                                                   "limit": {"type": "integer", "maximum": 18446744073709551615}},
                  "required": ["deep"]}}, "required": ["a", "b"]},
        "return": {"type": "number"}}},
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(id, text):
    return {"role": "tool", "tool_call_id": id, "name": "get_weather", "content": text}


SYSTEM = {"role": "system", "content": "Be brief."}

PLAIN = [
    [user("Hi")],
    [SYSTEM, user(" Hello there \n")],
    [user("1+1?"), assistant("2"), user("And 2+2? ünï 日本 🦙")],
    [SYSTEM, user("q"), assistant("<think>\nhm\n</think>\n\nanswer"), user("again")],
    [user("a"), user("b")],
    [SYSTEM],
    [user("a"), assistant("b", reasoning_content="because\nit is")],
    [user("x"), assistant("y", thinking="z"), user("w")],
    [user([{"type": "text", "text": "part one"}, {"type": "text", "text": "two"}])],
    [user("a"), {"role": "alien", "content": "c"}],
    [{"role": "developer", "content": "dev"}, user("x")],
    [user("a"), assistant("b"), {"role": "skip", "content": "no"}, user("c"), {"role": "stop", "content": ""}, user("never")],
    [],
]


def with_calls(weather, numbers, nothing):
    return [
        [user("weather?"), assistant(nothing, tool_calls=[call("abcdefghi", "get_weather", weather)]), tool("abcdefghi", '{"t": 21.5}')],
        [SYSTEM, user("weather?"),
         assistant("Let me look.", tool_calls=[call("abcdefghi", "get_weather", weather), call("jklmnopqr", "add", numbers)]),
         tool("abcdefghi", "21"), tool("jklmnopqr", "3"), assistant("It is 21."), user("thanks")],
        [user("w"), assistant(nothing, tool_calls=[call("short", "get_weather", weather)])],
    ]


def contexts():
    weather = {"city": "Zürich", "days": [1, 2.5, True, None], "nested": {"q": 'a"b\n'}}
    cases = PLAIN + with_calls(weather, {"a": 1}, None)
    cases += with_calls(json.dumps(weather, ensure_ascii=False), '{"a": 1}', None) + with_calls(weather, {"a": 1}, "")
    for messages in cases:
        for tools in (None, TOOLS):
            for more in ({"add_generation_prompt": True}, {"add_generation_prompt": False},
                         {"add_generation_prompt": True, "enable_thinking": False},
                         {"add_generation_prompt": True, "enable_thinking": True, "tools_in_user_message": False,
                          "builtin_tools": ["get_weather", "code_interpreter"]}):
                yield {"messages": messages, "tools": tools, "documents": None, "bos_token": "<s>", "eos_token": "</s>", **more}
