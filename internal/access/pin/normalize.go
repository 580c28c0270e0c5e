package pin

import "unicode/utf8"

// appendNormalized writes a text as a reader takes it in: small letters, lookalikes as
// what they look like, hidden characters and emphasis gone, runs of blanks as one.
func appendNormalized(out []byte, text string) []byte {
	blank := false
	for _, r := range text {
		as := normalizedRune(r)
		switch {
		case as == ' ':
			blank = len(out) > 0
			continue
		case as == 0:
			continue
		case blank:
			out = append(out, ' ')
			blank = false
		}
		if as < utf8.RuneSelf {
			out = append(out, byte(as))
		} else {
			out = utf8.AppendRune(out, as)
		}
	}
	return out
}

// normalizedRune is what a character is read as, 0 for one that is not read at all.
func normalizedRune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(ascii[r])
	}
	return normalizeRune(r)
}

// ascii is readAs of most characters there are.
var ascii = func() (table [utf8.RuneSelf]byte) {
	for r := range table {
		table[r] = byte(normalizeRune(rune(r)))
	}
	return table
}()

func normalizeRune(r rune) rune {
	switch r {
	case ' ', '\n', '\t', '\r', '\u00a0':
		return ' '
	case '*', '`':
		return 0
	}
	if invisibleKind(r) != "" {
		return 0
	}
	return letterOf(r)
}

// letterOf is the small letter of ours that a character passes for.
func letterOf(r rune) rune {
	if r >= 0xff01 && r <= 0xff5e { // full width
		r -= 0xfee0
	} else if r >= utf8.RuneSelf {
		if like, ok := lookalikes[r]; ok {
			r = like
		}
	}
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// plainText tells that a text has nothing but characters of ASCII that can be seen.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// kind is what a byte of a text as it is read is to words.
type kind byte

const (
	other  kind = iota // between words
	letter             // part of a word
	joint              // part of a name of several words
)

// kinds are the kinds of all bytes. Letters and digits are those of \b and \w.
var kinds = func() (table [256]kind) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
			table[c] = letter
		case c == '-', c == '.':
			table[c] = joint
		}
	}
	return table
}()
