package search

import (
	"slices"
	"strings"
)

// Limits of synonyms.
const (
	mostRelated    = 16
	mostLearned    = 4   // of them, learned in one namespace
	learnedAtOnce  = 512 // words of a namespace that have any
	shortParamText = 4   // words that explain a parameter's name rather than its use
)

// thesaurus holds words that mean the same when they are about tools, one group per
// line.
var thesaurus = []string{
	"create make new add start open generate insert",
	"delete remove erase drop destroy trash discard",
	"update change edit modify set alter patch adjust",
	"list show display enumerate view see",
	"get read fetch retrieve load",
	"show view get retrieve",
	"search find lookup query locate",
	"send post deliver notify",
	"stop end halt terminate kill cancel",
	"run execute invoke call trigger",
	"start launch begin boot",
	"pause mute silence",
	"copy duplicate clone fork",
	"move transfer relocate rename",
	"merge join combine unite",
	"undo revert rollback reset restore unstage",
	"reschedule move postpone",
	"answer reply respond",
	"give assign grant",
	"remember store save keep write",
	"mail email message",
	"message text sms",
	"picture image photo screenshot snapshot",
	"video movie clip",
	"song track music",
	"folder directory",
	"repository repo project",
	"database db",
	"document doc file",
	"issue ticket bug error",
	"pr pull request merge",
	"appointment meeting event",
	"person user member people contact",
	"customer client buyer",
	"money payment refund",
	"discount voucher coupon",
	"build pipeline workflow ci job",
	"failed error broken",
	"log output console",
	"internet web online",
	"site website page",
	"sheet spreadsheet",
	"slide presentation deck",
	"machine instance server vm",
	"permission access",
	"comment note remark",
	"label tag",
	"deadline due",
	"todo task",
	"volume loud louder quieter",
	"warm warmer cold heat heating temperature thermostat",
	"rain weather forecast",
	"way route direction",
	"nearby near local",
	"free busy available",
	"history past previous version revision",
	"cost price spend bill",
	"size big large",
	"schedule later tomorrow",
	"block lock",
	"sum aggregate group total",
	"shell terminal command",
	"language translate",
}

// related are the words that mean about the same as a word of the query: by the
// vocabulary, and by how servers name and describe their parameters.
func (s *search) related(t term) []alternative {
	found := t.means[:min(len(t.means), mostRelated)]
	if t.stem == "" {
		return found
	}
	for _, p := range s.parts {
		for _, other := range p.Index.related[t.stem] {
			if len(found) >= mostRelated {
				return found
			}
			found = addAlternatives(found[:len(found):len(found)], []alternative{{other, factorRelated}})
		}
	}
	return found
}

// relate learns synonyms from a parameter: a name that abbreviates a word of its
// description, as repo does repository, and a name that its description only rephrases.
func (b *builder) relate(name, description string) {
	var names, texts []string
	words(name, func(word string) { names = append(names, stem(word)) })
	words(cut(description, longestText), func(word string) {
		if !filler[word] && len(texts) < 2*shortParamText {
			texts = append(texts, stem(word))
		}
	})
	for _, one := range names {
		for _, other := range texts {
			if abbreviates(one, other) || len(names) == 1 && len(texts) <= shortParamText {
				b.pair(one, other)
				b.pair(other, one)
			}
		}
	}
}

// abbreviates tells whether a word is short for another: its beginning, or some of its
// letters in order, starting with the first.
func abbreviates(short, long string) bool {
	if len(short) < 2 || len(long) < len(short)+2 || short[0] != long[0] {
		return false
	}
	if strings.HasPrefix(long, short) {
		return len(short) >= 3 || len(long) >= 6
	}
	if len(short) > 4 || strings.ContainsAny(short[1:], "aeiou") {
		return false
	}
	at := 0
	for i := range len(short) {
		next := strings.IndexByte(long[at:], short[i])
		if next < 0 {
			return false
		}
		at += next + 1
	}
	return true
}

func (b *builder) pair(one, other string) {
	have := b.related[one]
	if one == other || len(have) >= mostLearned || have == nil && len(b.related) >= learnedAtOnce || slices.Contains(have, other) ||
		filler[one] || filler[other] || generic[one] || generic[other] {
		return
	}
	b.related[strings.Clone(one)] = append(have, strings.Clone(other))
}

// generic are words that are too common in parameters to distinguish tools.
var generic = map[string]bool{"id": true, "name": true, "key": true, "valu": true, "type": true, "path": true, "text": true, "number": true}
