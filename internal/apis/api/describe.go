package api

import "strings"

// maxDescription bounds the description of a tool.
const maxDescription = 1200

// Shorten cuts a text at the end of a paragraph or sentence, if there is one.
func Shorten(text string) string {
	if len(text) <= maxDescription {
		return text
	}
	text = strings.ToValidUTF8(text[:maxDescription], "")
	for _, end := range []string{"\n\n", ". ", "\n", " "} {
		if i := strings.LastIndex(text, end); i > maxDescription/2 {
			return strings.TrimSpace(text[:i+1]) + " …"
		}
	}
	return text + " …"
}
