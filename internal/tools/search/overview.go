package search

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/tool"
)

// named are addresses and paths. It takes a while to compile, and so is when it is used first.
var named = lazyregexp.New(`https?://\S+|(?:[\w.~-]*/)+[\w.-]+|\b[\w-]+\.[A-Za-z][A-Za-z0-9]{1,4}\b`)

// withKinds has, for each address and path of a text, what it is and its kind: the rest of it
// is data of a task, not a word for a tool.
func withKinds(text string) string { return named().ReplaceAllStringFunc(text, kindOf) }

// kindOf are the words for an address or a path. What is none, such as and/or, stays.
func kindOf(text string) string {
	if _, address, found := strings.Cut(text, "://"); found {
		host, _, _ := strings.Cut(address, "/")
		return " url " + strings.TrimPrefix(host, "www.") + " "
	}
	kind, known := fileKinds[strings.ToLower(strings.TrimPrefix(path.Ext(text), "."))]
	switch {
	case known:
		return " file " + kind + " "
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || strings.HasPrefix(text, "./"):
		return " file " + path.Base(text) + " "
	default:
		return text
	}
}

// fileKinds are words for kinds of files, by extension.
var fileKinds = map[string]string{
	"txt": "text", "md": "markdown", "csv": "csv", "tsv": "csv", "json": "json", "yaml": "yaml", "yml": "yaml", "xml": "xml", "html": "html",
	"pdf": "pdf", "doc": "word document", "docx": "word document", "odt": "document", "xls": "excel", "xlsx": "excel", "ods": "spreadsheet",
	"ppt": "presentation", "pptx": "presentation", "png": "image", "jpg": "image", "jpeg": "image", "gif": "image", "svg": "svg", "webp": "image",
	"mp3": "audio", "wav": "audio", "flac": "audio", "ogg": "audio", "mid": "midi", "midi": "midi", "mp4": "video", "mov": "video", "mkv": "video",
	"zip": "archive", "tar": "archive", "gz": "archive", "db": "database", "sqlite": "sqlite", "sql": "sql", "log": "log", "ics": "calendar",
	"py": "code", "js": "code", "ts": "code", "go": "code", "java": "code", "rs": "code", "c": "code", "cpp": "code", "sh": "script", "ipynb": "notebook",
}

// Space is a namespace with tools that match.
type Space struct {
	Name     string
	Matched  int      // tools of it that match well
	Families []string // what most of its tools are about, if it has many
}

// Limits of what is shown of a namespace.
const (
	wellMatched    = float32(0.35) // of the best score
	mostSpaces     = 5
	mostFamilies   = 4
	toolsOfAFamily = 2
	manyTools      = 8
	mostRead       = 500 // tools of a namespace that are read to find its families
)

// spaces are the namespaces of the hits and how many of their tools match well.
func (s *search) spaces(scores []float32, hits []Hit) []Space {
	top := slices.Max(append(scores, 0))
	matched := map[string]int{}
	about := map[string][]string{}
	for n, p := range s.parts {
		if len(p.Tools) == 0 {
			continue
		}
		name := p.Tools[0].Space
		about[name] = p.Index.families
		for _, v := range scores[s.offsets[n]:][:len(p.Tools)] {
			if v > 0 && v >= wellMatched*top {
				matched[name]++
			}
		}
	}
	var found []Space
	for _, h := range hits {
		if len(found) == mostSpaces {
			break
		}
		if n := matched[h.Space]; n > 0 && h.Space != "" {
			found = append(found, Space{h.Space, n, about[h.Space]})
			delete(matched, h.Space)
		}
	}
	return found
}

// families are the words, other than verbs, that most names of a namespace's tools share.
func families(tools []tool.Info) []string {
	if len(tools) < manyTools {
		return nil
	}
	tools = tools[:min(len(tools), mostRead)]
	count, typed := map[string]int{}, map[string]string{}
	for i := range tools {
		words(tools[i].Name, func(word string) {
			if s := stem(word); !vocabulary().verbs[s] && !filler[word] && len(word) > 2 {
				count[s]++
				typed[s] = cmp.Or(typed[s], word)
			}
		})
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	var found []string
	for _, name := range names {
		// What all tools have in common, such as the server's name, is no family.
		if n := count[name]; n >= toolsOfAFamily && n <= len(tools)*3/4 && len(found) < mostFamilies {
			found = append(found, typed[name])
		}
	}
	return found
}
