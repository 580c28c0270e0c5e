package trust

import (
	"fmt"
	"strings"
	"unicode"
)

// hidden names what a character does that a reader cannot see, or is "".
func hidden(r rune) string {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return ""
	case r == 0x1b || r == 0x9b:
		return "terminal escape"
	case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0:
		return "control character"
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return "text direction"
	case r >= 0xe0000 && r <= 0xe007f:
		return "tag character"
	case r >= 0xfe00 && r <= 0xfe0f && r != 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return "variation selector" // U+FE0F makes an emoji colourful and is everywhere
	case r >= 0x200b && r <= 0x200d, r == 0x2060, r == 0xfeff, r == 0x00ad, r == 0x034f, r == 0x180e, r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800:
		return "invisible character"
	case r >= 0x2061 && r <= 0x2064, r >= 0x206a && r <= 0x206f, unicode.Is(unicode.Co, r), unicode.Is(unicode.Cf, r):
		return "invisible character"
	default:
		return ""
	}
}

// Visible writes hidden characters as \u{…}, so that a text reads as it is.
func Visible(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return hidden(r) != "" || r == '\r' }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) != "" || r == '\r' {
			fmt.Fprintf(&b, `\u{%X}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lookalikes are letters of other scripts that pass for one of ours, and those of
// ours that pass for each other: pairs, the stranger first.
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

// skeleton is what a name looks like: two names of one skeleton pass for each
// other.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case hidden(r) != "":
			continue
		case r >= 0xff01 && r <= 0xff5e: // full width
			r -= 0xfee0
		case r >= 0x1d400 && r <= 0x1d6a3: // mathematical letters, in alphabets of 52
			r = mathematical(r)
		}
		for range 2 { // a stranger may pass for one of ours that passes for another
			if like, ok := lookalikes[r]; ok {
				r = like
			}
		}
		r = unicode.ToLower(r)
		b.WriteRune(r)
	}
	return b.String()
}

func mathematical(r rune) rune {
	n := (r - 0x1d400) % 52
	if n < 26 {
		return 'A' + n
	}
	return 'a' + n - 26
}

// plain tells whether a name has nothing but ASCII that can be seen.
func plain(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
