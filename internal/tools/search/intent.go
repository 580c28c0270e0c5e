package search

import (
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
)

// intent is what a query wants.
type intent int

// The intents.
const (
	unclear intent = iota
	asks           // for things that it names, without saying how they are got
	reads          // says how: list, show, find
	acts           // wants something done
)

// Weights of tools that do not suit the intent.
const (
	factorReadOnly = float32(0.6) // of a tool that only reads, when something is to be done
	factorWriting  = float32(0.7) // of a tool that may write, when something is asked for
)

// Words that a query may begin with.
var (
	readingVerbs = sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for word := range wordSet(`list show display enumerate view see get read fetch retrieve search find lookup query locate check
			count compare download describe inspect browse identify preview watch look tell know`) {
			set[stem(word)] = true
		}
		return set
	})
	determiners = wordSet("a an the this that these those my our your his her their all every each another it them him me us everybody somebody")
	politely    = wordSet("please kindly can could would you i we want need to like let lets me us help now then just also id")
)

// intentOf tells the intent by the first word or phrase: a verb in its plain form wants
// something done. Other forms are things, as in labels of an issue.
func intentOf(text string) intent {
	v := vocabulary()
	tokens := tokenize(text, mostQueryWords)
	for i, t := range tokens {
		if politely[t.typed] {
			continue
		}
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1].typed
		}
		return v.intentOf(tokens, i, determiners[next])
	}
	return unclear
}

// intentOf tells the intent by a token; determined says that a word such as "the" follows,
// which makes a verb of a word that may also be a noun: email an invoice, email of Anna.
func (v *knownWords) intentOf(tokens []token, at int, determined bool) intent {
	t := tokens[at]
	isNoun, verb := v.nouns[t.stem], t.stem
	if p := v.phraseAt(tokens, at); p != nil {
		isNoun, verb = false, p.means[0].stem
	} else if means := v.single[t.stem]; !isNoun && !v.verbs[verb] && len(means) > 0 {
		verb = means[0].stem
	}
	switch {
	case questions[t.typed] || !plainForm(t.typed):
		return asks
	case readingVerbs()[verb]:
		return reads
	case isNoun && determined || v.verbs[verb] && !isNoun:
		return acts
	case v.verbs[verb]: // build artifacts
		return unclear
	}
	return asks
}

// plainForm reports whether a word has none of the endings of other forms of a verb.
func plainForm(word string) bool {
	return !hasAnySuffix(word, "s", "ing", "ed") || hasAnySuffix(word, "ss")
}

// suits is the weight of a tool by the intent. Only servers that say of some tools that
// they only read say something about the others.
func (i intent) suits(x *Index, info *tool.Info) float32 {
	switch {
	case i == acts && info.Hints.ReadOnly:
		return factorReadOnly
	case (i == asks || i == reads) && x.readers && !info.Hints.ReadOnly:
		return factorWriting
	}
	return 1
}
