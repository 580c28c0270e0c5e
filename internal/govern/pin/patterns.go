package pin

import (
	"regexp"
	"strings"
	"sync"
)

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

// blob is more base64 or hexadecimal digits than a description needs.
var blob = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z0-9+/_-]{160,}={0,2}|(?:[0-9a-fA-F]{2}){80,}`)
})

// isBlob reports whether a text contains a blob, like the pattern, but reads few of its
// bytes: after a byte that no blob has, it continues where a blob that begins there
// would end.
func isBlob(text string) bool {
	const shortest = 160
	for at := shortest - 1; at < len(text); {
		begin := at
		for begin > at-shortest && blobBytes[text[begin]] {
			begin--
		}
		if begin == at-shortest {
			return true
		}
		at = begin + shortest
	}
	return false
}

// blobBytes are the bytes that blobs are made of.
var blobBytes = func() (table [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/_-") {
		table[c] = true
	}
	return table
}()
