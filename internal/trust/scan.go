package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Finding is something in a definition that does not belong there.
type Finding struct {
	Code Code   `json:"code"`
	Path string `json:"path"` // where in the definition
	Text string `json:"text"` // what it is, hidden characters made visible
}

// Code sorts findings.
type Code string

// The codes.
const (
	HiddenText   Code = "hidden_characters" // characters a reader does not see and a model does
	Orders       Code = "instructions"      // text that tells the model what to do or to keep quiet about
	OtherTool    Code = "other_tool"        // it talks about a tool of somebody else
	SecretPath   Code = "secret_path"       // it names a place where secrets are kept
	Encoded      Code = "encoded"           // a blob nobody can read
	TooLong      Code = "too_long"
	Repeated     Code = "repeated_member" // one member twice: readers see different ones
	Unreadable   Code = "unreadable"      // bytes that are no text
	ShadowsOwn   Code = "shadows_own"     // named like one of our own tools
	ShadowsOther Code = "shadows_other"   // its name passes for another tool's
)

// Bounds of what reads like a description.
const (
	longestText       = 8 << 10
	longestDefinition = 64 << 10
	mostFindings      = 20
	excerptLength     = 120
)

// scanned is a text under the eyes of the scanner.
type scanner struct {
	mentions *mentions
	found    []Finding
}

// scan looks through a definition in its canonical form. The same definition
// always gives the same findings.
func scan(definition []byte, repeated bool, m *mentions) []Finding {
	s := scanner{mentions: m}
	switch {
	case !utf8.Valid(definition):
		s.add(Unreadable, "definition", "it is not valid UTF-8")
	case repeated:
		s.add(Repeated, "definition", "a member stands in it twice")
	}
	if len(definition) > longestDefinition {
		s.add(TooLong, "definition", fmt.Sprintf("%d bytes", len(definition)))
	}
	s.value("", definition)
	return s.found
}

func (s *scanner) add(code Code, path, text string) {
	if len(s.found) < mostFindings {
		s.found = append(s.found, Finding{code, orWhole(path), text})
	}
}

// value looks at every text in a value, names of members included.
func (s *scanner) value(path string, raw json.RawMessage) {
	if t := parts(raw); t != nil {
		for _, name := range t.names {
			inner := join(path, name, t.list)
			if !t.list {
				s.text(inner, name)
			}
			s.value(inner, t.values[name])
		}
		return
	}
	var text string
	if bytes.HasPrefix(raw, []byte{'"'}) && json.Unmarshal(raw, &text) == nil {
		s.text(path, text)
	}
}

func (s *scanner) text(path, text string) {
	if len(text) > longestText {
		s.add(TooLong, path, fmt.Sprintf("%d characters", utf8.RuneCountInString(text)))
	}
	s.hidden(path, text)
	read := asRead(text)
	for _, p := range patterns {
		if at := p.words.FindStringIndex(read); at != nil {
			s.add(p.code, path, excerpt(read, at))
		}
	}
	if at := blob.FindStringIndex(text); at != nil {
		s.add(Encoded, path, excerpt(text, at))
	}
	if name := s.mentions.in(read); name != "" {
		s.add(OtherTool, path, "it speaks of "+name)
	}
}

func (s *scanner) hidden(path, text string) {
	for at, r := range text {
		what := hidden(r)
		if r == 0x200d && at > 0 { // joins the parts of an emoji
			if before, _ := utf8.DecodeLastRuneInString(text[:at]); before > 0x2190 {
				what = ""
			}
		}
		if what != "" {
			s.add(HiddenText, path, what+": "+excerpt(text, []int{at, at + utf8.RuneLen(r)}))
			return
		}
	}
}

// excerpt is what was found with a little around it.
func excerpt(text string, at []int) string {
	const around = 24
	begin, end := max(0, at[0]-around), min(len(text), at[1]+around)
	cut := strings.ToValidUTF8(text[begin:end], "")
	if len(cut) > excerptLength {
		cut = strings.ToValidUTF8(cut[:excerptLength], "") + "…"
	}
	return strings.Join(strings.Fields(Visible(cut)), " ")
}

// asRead is a text as a reader takes it in: small letters, lookalikes as what they
// look like, hidden characters and emphasis gone, runs of blanks as one.
func asRead(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range text {
		switch {
		case hidden(r) != "" || r == '*' || r == '`':
			continue
		case strings.ContainsRune(" \n\t\r\u00a0", r):
			blank = b.Len() > 0
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(letterOf(r))
	}
	return b.String()
}

// letterOf is the small letter of ours that a character passes for.
func letterOf(r rune) rune {
	if r >= 0xff01 && r <= 0xff5e { // full width
		r -= 0xfee0
	} else if like, ok := lookalikes[r]; ok && r >= 0x80 {
		r = like
	}
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// patterns are looked for in texts as they are read.
var patterns = []struct {
	code  Code
	words *regexp.Regexp
}{
	{Orders, regexp.MustCompile(`\b(ignore|disregard|forget|override|bypass)\b[^.]{0,30}\b(previous|prior|above|earlier|preceding|other|all|any|system|safety|your)\b[^.]{0,20}\b(instructions?|prompts?|rules?|messages?|guidelines?|directions?|context|polic(y|ies))`)},
	{Orders, regexp.MustCompile(`\b(do not|don't|dont|never|must not|without)\b[^.]{0,15}\b(tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|show|notify|notifying|alert|asking|ask|explain)\b[^.]{0,25}\b(the )?(user|human|person|anyone|anybody|client|operator)\b`)},
	{Orders, regexp.MustCompile(`\b(keep|stay|remain)\b[^.]{0,20}\b(secret|hidden|silent|quiet)\b[^.]{0,20}\b(from|about)\b`)},
	{Orders, regexp.MustCompile(`\b(before|after|instead of|prior to)\b (using|calling|invoking|running) (any|this|every|other|another|all)\b[^.]{0,30}\b(tools?|functions?)\b[^.]{0,40}\b(must|first|always|call|read|send)\b`)},
	{Orders, regexp.MustCompile(`<\s*/?\s*(important|system|instructions?|secret|admin|hidden|assistant|prompt)\s*>`)},
	{Orders, regexp.MustCompile(`\b(you (must|have to|need to|should) (always|never|first|now))\b[^.]{0,40}\b(call|read|send|pass|include|forward|upload|use)\b`)},
	{Orders, regexp.MustCompile(`\b(pass|send|include|put|forward|attach|append|add)\b[^.]{0,40}\b(contents?|text|value|conversation|chat history|system prompt|credentials?|api keys?|tokens?|passwords?|private key|environment variables?)\b[^.]{0,40}\b(as|in|into|to|via|through)\b[^.]{0,25}\b(parameter|argument|field|sidenote|note|url|address|header|this tool)\b`)},
	{Orders, regexp.MustCompile(`\b(new|updated|real|actual) (system )?(instructions?|prompt)\s*:`)},
	{Orders, regexp.MustCompile(`\b(act|behave|respond) as (if|though) (you|the user)\b|\byou are now\b|\bjailbreak\b|\bdeveloper mode\b`)},
	{SecretPath, regexp.MustCompile(`(~|\$home|/root|/home/[a-z0-9._-]+|%userprofile%)?[/\\]?\.(ssh|aws|gnupg|kube|docker|netrc|npmrc|pgpass|pypirc|git-credentials)([/\\ .,"')]|$)`)},
	{SecretPath, regexp.MustCompile(`\bid_(rsa|dsa|ecdsa|ed25519)\b|/etc/(passwd|shadow|sudoers)\b|\bauthorized_keys\b|(^|[\s/"'(])\.env\b|\.(bash|zsh)_history\b|\b(mcp|claude_desktop_config|credentials|secrets)\.json\b|\blogin keychain\b|/proc/(self|\d+)/environ`)},
}

// blob is base64 or hexadecimal digits beyond what a description needs.
var blob = regexp.MustCompile(`[A-Za-z0-9+/_-]{160,}={0,2}|(?:[0-9a-fA-F]{2}){80,}`)
