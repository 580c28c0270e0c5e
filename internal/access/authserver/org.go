package authserver

import (
	"net/http"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/core/principal"
)

// orgFields are the part of a form in which somebody with several organisations chooses
// the one in which a client acts.
const orgFields = `{{if .Orgs}}<fieldset><legend>In which organisation?</legend>
{{range .Orgs}}<p><label><input type="radio" name="org" value="{{.Name}}"{{if .Chosen}} checked{{end}} required> {{or .Name "none: this server itself"}}</label></p>{{end}}</fieldset>
{{end}}`

// choice is an organisation that a person can choose for a client.
type choice struct {
	Name   string
	Chosen bool
}

// choices lists the organisations of somebody who is in several; none of somebody who has
// no choice. That of the session is chosen if they are not in the wanted one.
func (s *Server) choices(who principal.Principal, wanted string) (list []choice) {
	orgs, found := s.Orgs(people.PersonOf(who)), false
	if len(orgs) < 2 {
		return nil
	}
	for _, org := range orgs {
		found = found || org == wanted && wanted != ""
	}
	if !found {
		wanted = who.Org
	}
	for _, org := range orgs {
		list = append(list, choice{org, org == wanted})
	}
	return list
}

// chosen returns the person in the organisation that a form names. Who is not in it is
// refused.
func (s *Server) chosen(r *http.Request, who principal.Principal) (principal.Principal, error) {
	if _, given := r.PostForm["org"]; !given {
		return who, nil
	}
	return s.Principal(r.Context(), people.PersonOf(who), r.PostFormValue("org"))
}
