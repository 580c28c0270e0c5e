package pin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Finding is text in a definition that does not belong there.
type Finding struct {
	Code Code   `json:"code"`
	Path string `json:"path"` // where in the definition
	Text string `json:"text"` // what it is, hidden characters made visible
}

// Code is the kind of a finding.
type Code string

// The codes.
const (
	HiddenText   Code = "hidden_characters" // characters that a person does not see but a model reads
	Orders       Code = "instructions"      // instructions to the model, or to hide something
	OtherTool    Code = "other_tool"        // names a tool of another upstream
	SecretPath   Code = "secret_path"       // names a place where secrets are stored
	Encoded      Code = "encoded"           // an unreadable blob
	TooLong      Code = "too_long"
	Repeated     Code = "repeated_member" // a member twice: readers see different ones
	Unreadable   Code = "unreadable"      // bytes that are not text
	ShadowsOwn   Code = "shadows_own"     // named like one of our own tools
	ShadowsOther Code = "shadows_other"   // its name imitates another tool's
)

// Limits of an ordinary description.
const (
	longestText       = 8 << 10
	longestDefinition = 64 << 10
	maxFindings       = 20
	excerptLength     = 120
)

// scan finds what is suspicious in a definition, whatever other tools there are. tree is what it
// has, and ok means that it is canonical JSON. The same definition always gives the same findings.
func scan(definition []byte, tree *node, ok bool) *content {
	c := &content{}
	if !utf8.Valid(definition) {
		c.add(Unreadable, nil, "it is not valid UTF-8")
	}
	if ok && tree.repeats() {
		c.add(Repeated, nil, "an object has two members of one name")
	}
	if len(definition) > longestDefinition {
		c.add(TooLong, nil, fmt.Sprintf("%d bytes", len(definition)))
	}
	c.scan(nil, tree)
	c.findings = slices.Clip(c.findings)
	return c
}

func (c *content) add(code Code, at *place, text string) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, Finding{code, at.String(), text})
	}
}

// scan scans every text in a value, names of members included.
func (c *content) scan(at *place, n *node) {
	if n.kind == '"' {
		c.scanText(at, n.text)
	}
	if len(n.kids) == 0 {
		return
	}
	for i, name := range n.names() {
		inside := n.step(at, name)
		if n.kind == '{' {
			c.scanText(inside, name)
		}
		c.scan(inside, &n.kids[i])
	}
}

func (c *content) scanText(at *place, text string) {
	if len(text) > longestText {
		c.add(TooLong, at, fmt.Sprintf("%d characters", utf8.RuneCountInString(text)))
	}
	c.scanHidden(at, text)
	read := normalized(text)
	seen, names := words(read)
	for _, p := range patterns {
		if seen&p.needs != p.needs {
			continue
		}
		if found := p.words().FindStringIndex(read); found != nil {
			c.add(p.code, at, excerpt(read, found))
		}
	}
	if found := blob(text); found != nil {
		c.add(Encoded, at, excerpt(text, found))
	}
	if before := len(c.findings); len(names) > 0 && before < maxFindings {
		c.candidates = append(c.candidates, candidates{before, at, names})
	}
}

// words scans the words of a normalized text: seen are the marks of significant ones, names
// those that could be names of tools.
func words(read string) (seen marks, names []string) {
	joint := func(r rune) bool { return r == '-' || r == '.' } // between the words of a name
	for name := range strings.FieldsFuncSeq(read, func(r rune) bool { return !isWord(r) && !joint(r) }) {
		for word := range strings.FieldsFuncSeq(name, joint) {
			seen |= neededWords[word]
		}
		if name = strings.Trim(name, ".-"); compound(name) {
			names = append(names, name)
		}
	}
	return seen, names
}

// isWord reports whether a normalized character is part of a word, as \w has it.
func isWord(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' }

// normalized is a text in lower case, with lookalikes replaced by what they look like,
// without hidden characters and emphasis, and with runs of white space as one blank.
func normalized(text string) string {
	var b strings.Builder
	blank := false
	for _, r := range text {
		switch {
		case strings.ContainsRune(" \n\t\r\u00a0", r):
			blank = b.Len() > 0
			continue
		case r == '*', r == '`', invisibleKind(r) != "":
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

// letterOf is the lower-case Latin letter that a character looks like.
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

func (c *content) scanHidden(at *place, text string) {
	for i, r := range text {
		what := invisibleKind(r)
		if r == 0x200d && i > 0 { // joins the parts of an emoji
			if before, _ := utf8.DecodeLastRuneInString(text[:i]); before > 0x2190 {
				what = ""
			}
		}
		if what != "" {
			c.add(HiddenText, at, what+": "+excerpt(text, []int{i, i + utf8.RuneLen(r)}))
			return
		}
	}
}

// excerpt is a finding with a little context.
func excerpt(text string, at []int) string {
	const around = 24
	begin, end := max(0, at[0]-around), min(len(text), at[1]+around)
	cut := strings.ToValidUTF8(text[begin:end], "")
	if len(cut) > excerptLength {
		cut = strings.ToValidUTF8(cut[:excerptLength], "") + "…"
	}
	return strings.Join(strings.Fields(Visible(cut)), " ")
}

// pattern is a regular expression that is tried on normalized texts that contain the
// words it needs.
type pattern struct {
	code  Code
	words func() *regexp.Regexp // compiled when a text first needs it
	needs marks
}

// marks are the significant words found, one bit for each group of alternatives.
type marks uint64

// rule is a pattern as it is written below. It cannot match a text that lacks all words
// of one of its groups, each between word boundaries as \b has them. Most texts lack
// them, and that is found much faster than that the pattern does not match.
type rule struct {
	code    Code
	words   string
	choices []string
}

// patterns are the patterns, and neededWords maps the words they need to marks.
var patterns, neededWords = compiled([]rule{
	{Orders, `\b(ignore|disregard|forget|override|bypass)\b[^.]{0,30}\b(previous|prior|above|earlier|preceding|other|all|any|system|safety|your)\b[^.]{0,20}\b(instructions?|prompts?|rules?|messages?|guidelines?|directions?|context|polic(y|ies))`, []string{
		"ignore disregard forget override bypass",
		"previous prior above earlier preceding other all any system safety your",
	}},
	{Orders, `\b(do not|don't|dont|never|must not|without)\b[^.]{0,15}\b(tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|show|notify|notifying|alert|asking|ask|explain)\b[^.]{0,25}\b(the )?(user|human|person|anyone|anybody|client|operator)\b`, []string{
		"do don dont never must without",
		"tell telling inform informing mention mentioning reveal revealing disclose disclosing show notify notifying alert asking ask explain",
		"user human person anyone anybody client operator",
	}},
	{Orders, `\b(keep|stay|remain)\b[^.]{0,20}\b(secret|hidden|silent|quiet)\b[^.]{0,20}\b(from|about)\b`, []string{
		"keep stay remain",
		"secret hidden silent quiet",
		"from about",
	}},
	{Orders, `\b(before|after|instead of|prior to)\b (using|calling|invoking|running) (any|this|every|other|another|all)\b[^.]{0,30}\b(tools?|functions?)\b[^.]{0,40}\b(must|first|always|call|read|send)\b`, []string{
		"before after instead prior",
		"using calling invoking running",
		"tool tools function functions",
	}},
	{Orders, `<\s*/?\s*(important|system|instructions?|secret|admin|hidden|assistant|prompt)\s*>`, []string{
		"important system instruction instructions secret admin hidden assistant prompt",
	}},
	{Orders, `\b(you (must|have to|need to|should) (always|never|first|now))\b[^.]{0,40}\b(call|read|send|pass|include|forward|upload|use)\b`, []string{
		"you",
		"always never first now",
		"call read send pass include forward upload use",
	}},
	{Orders, `\b(pass|send|include|put|forward|attach|append|add)\b[^.]{0,40}\b(contents?|text|value|conversation|chat history|system prompt|credentials?|api keys?|tokens?|passwords?|private key|environment variables?)\b[^.]{0,40}\b(as|in|into|to|via|through)\b[^.]{0,25}\b(parameter|argument|field|sidenote|note|url|address|header|this tool)\b`, []string{
		"pass send include put forward attach append add",
		"content contents text value conversation chat system credential credentials api token tokens password passwords private environment",
		"parameter argument field sidenote note url address header tool",
	}},
	{Orders, `\b(new|updated|real|actual) (system )?(instructions?|prompt)\s*:`, []string{
		"new updated real actual",
		"instruction instructions prompt",
	}},
	{Orders, `\b(act|behave|respond) as (if|though) (you|the user)\b|\byou are now\b|\bjailbreak\b|\bdeveloper mode\b`, []string{
		"act behave respond now jailbreak developer",
	}},
	{SecretPath, `(~|\$home|/root|/home/[a-z0-9._-]+|%userprofile%)?[/\\]?\.(ssh|aws|gnupg|kube|docker|netrc|npmrc|pgpass|pypirc|git-credentials)([/\\ .,"')]|$)`, []string{
		"ssh aws gnupg kube docker netrc npmrc pgpass pypirc git",
	}},
	{SecretPath, `\bid_(rsa|dsa|ecdsa|ed25519)\b|/etc/(passwd|shadow|sudoers)\b|\bauthorized_keys\b|(^|[\s/"'(])\.env\b|\.(bash|zsh)_history\b|\b(mcp|claude_desktop_config|credentials|secrets)\.json\b|\blogin keychain\b|/proc/(self|\d+)/environ`, []string{
		"id_rsa id_dsa id_ecdsa id_ed25519 passwd shadow sudoers authorized_keys env bash_history zsh_history mcp claude_desktop_config credentials secrets keychain proc",
	}},
})

func compiled(rules []rule) (all []pattern, words map[string]marks) {
	words = map[string]marks{}
	next := marks(1)
	for _, r := range rules {
		p := pattern{code: r.code, words: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.words) })}
		for _, choice := range r.choices {
			for word := range strings.FieldsSeq(choice) {
				words[word] |= next
			}
			p.needs |= next
			next <<= 1
		}
		all = append(all, p)
	}
	return all, words
}

// blob finds more base64 or hexadecimal digits than a description needs; nil: there are none.
func blob(text string) []int {
	const shortest = 160
	begin := 0
	for i := range len(text) + 1 {
		if i < len(text) && isBlobByte(text[i]) {
			continue
		}
		if i-begin >= shortest {
			return []int{begin, i}
		}
		begin = i + 1
	}
	return nil
}

func isBlobByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("+/_-", c) >= 0
}

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
func skeleton(name string) string { return strings.Map(looksLike, name) }

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

// mentions finds names of tools of other upstreams, and of our own, in a definition.
// Only names of two or more words count: "search" is too common.
type mentions struct {
	upstream string
	names    *naming
	own      map[string]bool
}

// naming holds the names of all tools. It is never changed.
type naming struct {
	first map[string]string            // by name: the first namespace of the server that has such a tool
	orgs  map[string]map[string]string // likewise of each organisation; nothing tells one of another's
	more  map[tool.Ref]bool            // the others
	alike map[string][]tool.Ref        // tools whose exposed names look the same
}

// compound reports whether a name has two or more words.
func compound(name string) bool { return len(name) >= 8 && strings.ContainsAny(name, "_-.") }

// namesOf collects the names of all tools.
func namesOf(infos []tool.Info) *naming {
	n := &naming{first: make(map[string]string, 3*len(infos)), orgs: map[string]map[string]string{}, more: map[tool.Ref]bool{}, alike: exposedAlike(infos)}
	for i := range infos {
		ref := infos[i].Ref
		n.add(ref.Name, ref.Space)
		n.add(ref.String(), ref.Space)
		n.add(ref.Space+"__"+ref.Name, ref.Space)
	}
	return n
}

// namingFor is the naming of a list. It is reused while the names stay the same.
func (r *checkedList) namingFor(infos []tool.Info) *naming {
	if r != nil && slices.EqualFunc(r.from, infos, func(a, b tool.Info) bool { return a.Ref == b.Ref }) {
		return r.naming
	}
	return namesOf(infos)
}

func (n *naming) add(name, space string) {
	if !compound(name) {
		return
	}
	name = strings.ToLower(name)
	names := n.first
	if _, org := principal.SplitNamespace(space); org != "" {
		if n.orgs[org] == nil {
			n.orgs[org] = map[string]string{}
		}
		names = n.orgs[org]
	}
	if first, ok := names[name]; !ok {
		names[name] = space
	} else if first != space {
		n.more[tool.Ref{Space: space, Name: name}] = true
	}
}

// ownNames are the normalized names of our own tools.
func ownNames(own []string) map[string]bool {
	names := make(map[string]bool, len(own))
	for _, name := range own {
		names[strings.ToLower(name)] = true
	}
	return names
}

// foreign reports whether a word is the name of another upstream's tool, and of none of
// this upstream's.
func (m *mentions) foreign(word string) bool {
	_, org := principal.SplitNamespace(m.upstream)
	known := m.own[word]
	for _, names := range []map[string]string{m.names.first, m.names.orgs[org]} {
		first, named := names[word]
		if named && (first == m.upstream || m.names.more[tool.Ref{Space: m.upstream, Name: word}]) {
			return false
		}
		known = known || named
	}
	return known
}
