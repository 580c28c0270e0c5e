package authserver

import (
	"errors"
	"net/http"

	"github.com/luanette/luanette/internal/access/page"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
)

// refusal is an error in the form of OAuth.
type refusal struct {
	status int
	code   string
	text   string
}

func (r refusal) Error() string { return r.text }

// badGrant refuses a code or token. What exactly is wrong with it helps only guessing.
var badGrant = refusal{http.StatusBadRequest, "invalid_grant", "the code or token is not valid, or not any more"}

// refuseProgram answers a program with an error.
func (s *Server) refuseProgram(w http.ResponseWriter, r *http.Request, _ int, err error) {
	var no refusal
	if !errors.As(err, &no) {
		no = refusal{statusOf(err), codes[fault.CodeOf(err)], err.Error()}
		if no.code == "" {
			s.options.Log.ErrorContext(r.Context(), "authorization server", "path", r.URL.Path, "error", err)
			no = refusal{http.StatusInternalServerError, "server_error", "the request cannot be answered now"}
		}
	}
	writeJSON(w, no.status, map[string]string{"error": no.code, "error_description": no.text})
}

var codes = map[fault.Code]string{
	fault.InvalidParams: "invalid_request", fault.Denied: "access_denied", fault.NotFound: "not_found", fault.NeedsAuth: "login_required",
}

// refusePerson shows an error to a person.
func (s *Server) refusePerson(w http.ResponseWriter, r *http.Request, _ int, err error) {
	status := statusOf(err)
	if status == http.StatusInternalServerError {
		s.options.Log.ErrorContext(r.Context(), "authorization server", "path", r.URL.Path, "error", err)
		err = fault.New(fault.Internal, "the request cannot be answered now").WithHint("try again")
	}
	page.Write(w, status, problemPage, map[string]string{"Problem": err.Error(), "Hint": fault.HintOf(err)})
}

var problemPage = page.New("problem", `<h1>Not allowed</h1><p>{{.Problem}}</p>{{with .Hint}}<p>{{.}}</p>{{end}}`)

func statusOf(err error) int {
	var no refusal
	if errors.As(err, &no) {
		return no.status
	}
	return httpjson.StatusOf(err)
}

// writeJSON answers with JSON that is not cached.
func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	httpjson.JSON(w, status, body)
}
