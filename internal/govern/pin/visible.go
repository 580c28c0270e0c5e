package pin

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// invisibleKind names the kind of an invisible character, or is "".
func invisibleKind(r rune) string {
	if r == '\n' || r == '\t' || r == '\r' || r >= ' ' && r < 0x7f {
		return ""
	}
	for _, kind := range invisible {
		if kind.has(r) {
			return kind.name
		}
	}
	if unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cf, r) {
		return "invisible character"
	}
	return ""
}

// characters is a set of characters with a name.
type characters struct {
	name  string
	spans [][2]rune
}

func (c characters) has(r rune) bool {
	return slices.ContainsFunc(c.spans, func(span [2]rune) bool { return r >= span[0] && r <= span[1] })
}

// invisible are the characters that cannot be seen, by kind; the first match counts.
var invisible = []characters{
	{"terminal escape", [][2]rune{{0x1b, 0x1b}, {0x9b, 0x9b}}},
	{"control character", [][2]rune{{0, 0x1f}, {0x7f, 0x9f}}},
	{"text direction", [][2]rune{{0x202a, 0x202e}, {0x2066, 0x2069}, {0x200e, 0x200f}, {0x061c, 0x061c}}},
	{"tag character", [][2]rune{{0xe0000, 0xe007f}}},
	{"variation selector", [][2]rune{{0xfe00, 0xfe0e}, {0xe0100, 0xe01ef}}}, // U+FE0F is common in emoji
	{"invisible character", [][2]rune{
		{0x200b, 0x200d}, {0x2060, 0x2064}, {0x206a, 0x206f}, {0xfeff, 0xfeff}, {0x00ad, 0x00ad}, {0x034f, 0x034f}, {0x180e, 0x180e},
		{0x115f, 0x1160}, {0x3164, 0x3164}, {0xffa0, 0xffa0}, {0x2800, 0x2800},
	}},
}

// Visible writes hidden characters as \u{…}.
func Visible(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return invisibleKind(r) != "" || r == '\r' }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if invisibleKind(r) != "" || r == '\r' {
			fmt.Fprintf(&b, `\u{%X}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lookalikes are letters of other scripts that look like Latin ones, and Latin
// characters that look like each other: pairs, the replaced one first.
var lookalikes = func() map[rune]rune {
	m := map[rune]rune{}
	for pair := range strings.FieldsSeq(cyrillic + greek + others + ours) {
		r := []rune(pair)
		m[r[0]] = r[1]
	}
	return m
}()

const (
	cyrillic = "аa еe оo рp сc уy хx іi јj ѕs ԁd ԛq ԝw һh ѵv гr пn кk тt вb мm нh АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ІI ЈJ ЅS "
	greek    = "αa βb γy εe ηn ιi κk νv οo ρp τt υu χx ωw ϲc ϳj ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX "
	others   = "ıi ɩi ɪi ɡg ʟl ᴏo ᴜu ɑa ʋv ᴠv ᴡw ᴢz ſs ƒf ℓl ‐- ‑- ‒- –- —- −- ˗- ‿_ ＿_ ․. ⅼl ⅰi ⅴv ⅹx ⅽc ⅾd ⅿm "
	ours     = "1l Il |l 0o Oo"
)

// skeleton is what a name looks like: two names with one skeleton look the same.
func skeleton(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return asciiLooks[r]
		}
		return looksLike(r)
	}, name)
}

// asciiLooks is looksLike for ASCII.
var asciiLooks = func() (table [utf8.RuneSelf]rune) {
	for r := range table {
		table[r] = looksLike(rune(r))
	}
	return table
}()

// looksLike is the character that stands for all that look the same, or -1 for an
// invisible one.
func looksLike(r rune) rune {
	switch {
	case invisibleKind(r) != "":
		return -1
	case r >= 0xff01 && r <= 0xff5e: // full width
		r -= 0xfee0
	case r >= 0x1d400 && r <= 0x1d6a3: // mathematical letters, in alphabets of 52
		r = mathematical(r)
	}
	for range 2 { // a replacement may have a replacement
		if like, ok := lookalikes[r]; ok {
			r = like
		}
	}
	return unicode.ToLower(r)
}

func mathematical(r rune) rune {
	n := (r - 0x1d400) % 52
	if n < 26 {
		return 'A' + n
	}
	return 'a' + n - 26
}

// plain reports whether a name has visible ASCII characters only.
func plain(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
