-- utf8 library
local function try(f, ...) print(select(2, pcall(f, ...))) end
local s = "aé€😀"
print(#s, utf8.len(s), utf8.len(""), utf8.len(s, 2), utf8.len(s, 4, 4), utf8.len("\xff"), utf8.len("a\x80b"), utf8.len(s, -4))
print(utf8.char(97, 233, 8364, 128512), utf8.char(), utf8.char(0x7FFFFFFF):byte(1, -1))
print(utf8.codepoint(s, 1, -1)) print(utf8.codepoint("abc"), utf8.codepoint("abc", 2), utf8.codepoint("abc", 1, 0))
for p, c in utf8.codes(s) do io.write(p, ":", c, " ") end print()
print(utf8.offset(s, 1), utf8.offset(s, 2), utf8.offset(s, 3), utf8.offset(s, 5), utf8.offset(s, 6), utf8.offset(s, -1), utf8.offset(s, -4), utf8.offset(s, -5), utf8.offset(s, 0, 3), utf8.offset(s, 2, 2))
for c in s:gmatch(utf8.charpattern) do io.write("[", c, "]") end print()
print(utf8.len("\u{D800}", 1, -1, true), utf8.len("\u{D800}"), utf8.len("\u{7FFFFFFF}", 1, -1, true), utf8.codepoint("\u{7FFFFFFF}", 1, 1, true), utf8.len("\xC0\x80"), utf8.len("\xF4\x90\x80\x80"))
try(utf8.char, -1) try(utf8.char, 0x80000000) try(utf8.codepoint, "\xff") try(utf8.codepoint, "abc", 4) try(utf8.codepoint, "abc", 1, 4) try(utf8.codepoint, "abc", 0) try(utf8.len, "abc", 5) try(utf8.len, "abc", 1, 4) try(utf8.len)
try(utf8.offset, "abc", 1, 5) try(utf8.offset, "\x80", 1) try(utf8.codes)
try(function() for _ in utf8.codes("a\xffb") do end end) try(function() for _ in utf8.codes("a\u{D800}") do end end)
for _, c in utf8.codes("\u{D800}\u{200000}", true) do io.write(c, " ") end print()
