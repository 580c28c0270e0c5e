// Package manual serves the documentation: its list, its pages, and a search in it.
package manual

import (
	"bytes"
	"cmp"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
)

// Server answers /docs and /api/v1/docs. The documentation is public: no key is required.
type Server struct {
	files fs.FS
	read  func() ([]Page, error)
}

// New returns a server of the pages in files.
func New(files fs.FS) *Server {
	s := &Server{files: files}
	s.read = sync.OnceValues(s.load)
	return s
}

// Page is a page of the documentation.
type Page struct {
	Path  string `json:"path"` // without .md
	Title string `json:"title"`

	parts []part
}

// part is a heading with what is below it, up to the next heading.
type part struct {
	title, anchor, text string
}

// Found is a part of a page that matches a search.
type Found struct {
	Path    string `json:"path"`
	Anchor  string `json:"anchor,omitempty"`
	Page    string `json:"page"`
	Title   string `json:"title"`
	Excerpt string `json:"excerpt,omitempty"`

	score int
}

// Routes are the server's paths.
func (s *Server) Routes() []principal.Route {
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Open, Write: serve}
	}
	return []principal.Route{
		route("GET /docs", toPage),
		route("GET /docs/{path...}", s.open),
		route("GET /api/v1/docs", s.list),
		route("GET /api/v1/docs/{path...}", s.page),
	}
}

// toPage opens the documentation in the web page.
func toPage(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, "/#/docs", http.StatusFound)
	return nil
}

// open shows a page in the web page, or as Markdown to those who ask for a file.
func (s *Server) open(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("path")
	if path.Ext(name) == ".md" {
		return s.write(w, strings.TrimSuffix(name, ".md"))
	}
	if name = strings.Trim(path.Clean("/"+name), "/"); name == "" {
		return toPage(w, r)
	}
	http.Redirect(w, r, "/#/docs/"+name, http.StatusFound)
	return nil
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	return s.write(w, r.PathValue("path"))
}

// write sends a page as Markdown.
func (s *Server) write(w http.ResponseWriter, name string) error {
	text, err := fs.ReadFile(s.files, name+".md")
	if err != nil {
		return fault.New(fault.NotFound, "the documentation has no page %q", name).WithHint("GET /api/v1/docs lists the pages")
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // the client may have disconnected
	return nil
}

// list lists the pages, or with ?find= the parts that match.
func (s *Server) list(w http.ResponseWriter, r *http.Request) error {
	pages, err := s.read()
	if err != nil {
		return err
	}
	if words := strings.Fields(strings.ToLower(r.URL.Query().Get("find"))); len(words) > 0 {
		httpjson.JSON(w, http.StatusOK, map[string]any{"found": search(pages, words)})
		return nil
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"pages": pages})
	return nil
}

func (s *Server) load() (pages []Page, err error) {
	err = fs.WalkDir(s.files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(s.files, name)
		if err == nil {
			pages = append(pages, pageOf(strings.TrimSuffix(name, ".md"), text))
		}
		return err
	})
	return pages, err
}

// pageOf reads the headings of a page. A line with # in a block of code is none.
func pageOf(name string, text []byte) Page {
	page := Page{Path: name, Title: name}
	current, code := part{}, false
	var below strings.Builder
	end := func() {
		current.text = strings.TrimSpace(below.String())
		page.parts = append(page.parts, current)
		below.Reset()
	}
	for line := range bytes.Lines(text) {
		said := strings.TrimSpace(string(line))
		code = code != strings.HasPrefix(said, "```")
		title := strings.TrimLeft(said, "#")
		if code || title == said || !strings.HasPrefix(title, " ") {
			below.WriteString(said + "\n")
			continue
		}
		title = strings.TrimSpace(title)
		if current.title == "" && strings.HasPrefix(said, "# ") {
			page.Title = title
		} else {
			end()
		}
		current = part{title: title, anchor: Anchor(title)}
	}
	end()
	return page
}

// Anchor is the name of a heading in links, as GitHub makes it.
func Anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(title))
}

// mostFound is how many parts a search returns.
const mostFound = 8

// search returns the parts with all words, the best first: those with the words in their
// title, then those that have them most often for their length.
func search(pages []Page, words []string) []Found {
	found := []Found{}
	for _, page := range pages {
		for _, p := range page.parts {
			score := 0
			title, text := strings.ToLower(page.Title+" "+p.title), strings.ToLower(p.text)
			for _, word := range words {
				in := 20*strings.Count(title, word) + min(9, strings.Count(text, word))
				if in == 0 {
					score = 0
					break
				}
				score += in
			}
			if score > 0 {
				found = append(found, Found{page.Path, p.anchor, page.Title, cmp.Or(p.title, page.Title), excerpt(p.text, text, words), score})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Found) int { return cmp.Compare(b.score, a.score) })
	return found[:min(len(found), mostFound)]
}

// excerpt is the line with the first of the words that the text has.
func excerpt(text, lower string, words []string) string {
	const most = 160
	at := 0
	for _, word := range words {
		if i := strings.Index(lower, word); i >= 0 && len(lower) == len(text) {
			at = strings.LastIndexByte(text[:i], '\n') + 1
			break
		}
	}
	line, _, _ := strings.Cut(text[at:], "\n")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}
