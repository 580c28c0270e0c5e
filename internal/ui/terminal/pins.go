package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

// pin is a definition of a tool that awaits review.
type pin struct {
	ID       plain
	Upstream plain
	Kind     plain
	Name     plain
	State    plain // held or changed
	Digest   plain
	Changed  time.Time
	Flags    []struct{ Code, Path, Text plain }
}

func (p *pin) title() plain { return p.Upstream + "." + p.Name }

// pins loads the definitions that await review; none if the key is not an
// administrator's.
func (s *server) pins(ctx context.Context) (all []pin, err error) {
	for _, state := range []string{"changed", "held"} {
		var response struct{ Pins []pin }
		if err := s.get(ctx, "/api/v1/pins?state="+state, &response); err != nil {
			return nil, ignoreMissing(err)
		}
		all = append(all, response.Pins...)
	}
	return all, nil
}

func (b *state) pin(id string) *pin {
	for i := range b.pins {
		if string(b.pins[i].ID) == id {
			return &b.pins[i]
		}
	}
	return nil
}

func (p *pin) row(now time.Time) row {
	note := cell{text: "definition of a " + p.Kind + " awaits review"}
	if p.State == "changed" {
		note.text = "changed definition of a " + p.Kind + " awaits review"
	}
	if len(p.Flags) > 0 {
		note = cell{text: p.Flags[0].Code + ": " + p.Flags[0].Text, style: red}
	}
	return row{string(p.ID), []cell{{p.State, yellow, 0}, {text: p.title(), style: bold}, moment(p.Changed, now), {text: p.Upstream, style: faint}, note}}
}

// pinText writes a definition: its changes since it was approved, or all of it.
func (s *server) pinText(ctx context.Context, id string) (body, error) {
	var detail struct {
		pin
		Server     plain
		Definition json.RawMessage
		Diff       []struct {
			Path     plain
			Old, New json.RawMessage
		}
	}
	if err := s.get(ctx, "/api/v1/pins/"+url.PathEscape(id), &detail); err != nil {
		return nil, err
	}
	all := slices.Concat(field("definition", detail.title()), field("kind", detail.Kind), field("server", detail.Server), field("state", detail.State))
	for _, f := range detail.Flags {
		all = append(all, styled{f.Code + " in " + f.Path + ": " + f.Text, red})
	}
	if detail.State == "changed" && len(detail.Diff) > 0 {
		all = append(all, heading("Changes since it was approved")...)
		for _, d := range detail.Diff {
			all = slices.Concat(all, []styled{{d.Path, faint}}, changed("- ", d.Old, red), changed("+ ", d.New, green))
		}
	}
	return fixed(slices.Concat(all, heading("Definition"), pretty(detail.Definition))), nil
}

// changed is one side of a change.
func changed(sign plain, raw json.RawMessage, s style) []styled {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	all := coloured(unstyled(lines(text)), s)
	for i := range all {
		all[i].text = sign + all[i].text
	}
	return all
}

// decidePin approves or refuses a definition as it was shown.
func (m *model) decidePin(p *pin, decision string) tea.Cmd {
	path, want := "/api/v1/pins/"+url.PathEscape(string(p.ID))+"/decide", map[string]any{"decision": decision, "digest": p.Digest}
	done := map[string]plain{"approve": "approved", "refuse": "refused"}
	return m.act(func(ctx context.Context) error {
		return m.server.SendInto(ctx, http.MethodPost, path, want, nil)
	}, p.title()+" "+cmp.Or(done[decision], plain(decision)))
}
