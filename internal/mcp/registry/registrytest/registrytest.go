// Package registrytest is a registry for tests. It answers as the published OpenAPI of
// the official registry says, with the errors of the real one.
package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Entry is one version of a server, as server.json.
type Entry struct {
	Server  string // JSON
	Status  string // active if empty
	Message string
}

type entry struct {
	Entry
	name, version string
	latest        bool
}

// Server is a registry.
type Server struct {
	*httptest.Server
	entries []entry
}

// New starts a registry with entries; of each server the last one is the latest. The
// caller closes it.
func New(entries ...Entry) *Server {
	s := &Server{}
	for _, e := range entries {
		var head struct{ Name, Version string }
		if err := json.Unmarshal([]byte(e.Server), &head); err != nil {
			panic(err)
		}
		for i := range s.entries {
			if s.entries[i].name == head.Name {
				s.entries[i].latest = false
			}
		}
		s.entries = append(s.entries, entry{e, head.Name, head.Version, true})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", s.list)
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", s.get)
	s.Server = httptest.NewServer(mux)
	return s
}

func (e entry) listing() map[string]any {
	status := e.Status
	if status == "" {
		status = "active"
	}
	official := map[string]any{"status": status, "isLatest": e.latest, "publishedAt": "2026-01-01T00:00:00Z"}
	if e.Message != "" {
		official["statusMessage"] = e.Message
	}
	return map[string]any{
		"server": json.RawMessage(e.Server),
		"_meta":  map[string]any{"io.modelcontextprotocol.registry/official": official},
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if q.Get("limit") == "" {
		limit, err = 30, nil
	}
	search := strings.ToLower(q.Get("search"))
	switch {
	case err != nil || limit < 1 || limit > 100:
		refuse(w, http.StatusUnprocessableEntity, "validation failed", "expected number between 1 and 100")
		return
	case search != "" && len(search) < 3:
		refuse(w, http.StatusUnprocessableEntity, "validation failed", "expected length >= 3")
		return
	}
	var matches []entry
	for _, e := range s.entries {
		hidden := e.Status == "deleted" && q.Get("include_deleted") != "true" || q.Get("version") == "latest" && !e.latest
		if !hidden && strings.Contains(strings.ToLower(e.name), search) {
			matches = append(matches, e)
		}
	}
	slices.SortStableFunc(matches, func(a, b entry) int { return strings.Compare(a.name+":"+a.version, b.name+":"+b.version) })
	for len(matches) > 0 && matches[0].name+":"+matches[0].version <= q.Get("cursor") {
		matches = matches[1:]
	}
	metadata := map[string]any{}
	if len(matches) > limit {
		matches = matches[:limit]
		metadata["nextCursor"] = matches[limit-1].name + ":" + matches[limit-1].version
	}
	servers := []any{}
	for _, e := range matches {
		servers = append(servers, e.listing())
	}
	metadata["count"] = len(servers)
	answer(w, http.StatusOK, map[string]any{"servers": servers, "metadata": metadata})
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	name, err := url.PathUnescape(r.PathValue("name"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "Invalid server name encoding", "")
		return
	}
	for _, e := range s.entries {
		version := r.PathValue("version")
		if e.name == name && (e.version == version || version == "latest" && e.latest) {
			answer(w, http.StatusOK, e.listing())
			return
		}
	}
	refuse(w, http.StatusNotFound, "Server not found", "")
}

// refuse answers with an error, as problem+json.
func refuse(w http.ResponseWriter, status int, detail, message string) {
	problem := map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}
	if message != "" {
		problem["errors"] = []any{map[string]any{"message": message}}
	}
	answer(w, status, problem)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	if status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	w.WriteHeader(status)
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprintf(w, "%s\n", text)
}
