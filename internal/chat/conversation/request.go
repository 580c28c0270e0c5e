package conversation

import (
	"context"

	"github.com/luanette/luanette/internal/chat/agent"
)

// request gathers what the agent needs for a turn.
func (r *Service) request(ctx context.Context, t *Turn) (agent.Request, error) {
	m, p := t.Message, t.Message.Person
	text, prefs, err := r.applyDirectives(ctx, m)
	if err != nil {
		return agent.Request{}, err
	}
	settings, err := r.Settings(ctx, p.Org)
	if err != nil {
		return agent.Request{}, err
	}
	history, err := r.latest(ctx, p, m.Conversation, settings.HistorySent)
	if err != nil {
		return agent.Request{}, err
	}
	prompts, err := r.layers(ctx, p, prefs.Mode)
	if err != nil {
		return agent.Request{}, err
	}
	attached, err := r.attachments(ctx, t)
	if err != nil {
		return agent.Request{}, err
	}
	servers, err := r.offered(ctx, t)
	if err != nil {
		return agent.Request{}, err
	}
	language := prefs.ResponseLanguage
	if m.Hint != "" && !prefs.LanguageChosen {
		language = m.Hint
	}
	return agent.Request{
		ID: m.RequestID, Client: m.Client, Org: p.Org, User: p.User, Conversation: m.Conversation, Model: m.Model,
		Message: text, Attachments: attached, History: history, Language: language, First: prefs.FirstInteraction,
		Prompts: prompts, Servers: servers, Memory: r.Memory(p), Journal: journal{r, t},
	}, nil
}

// layers returns the prompts that apply to a person; later ones take precedence.
func (r *Service) layers(ctx context.Context, p Person, mode string) ([]agent.Prompts, error) {
	org, err := r.Prompts(ctx, p.org())
	if err != nil {
		return nil, err
	}
	own, err := r.Prompts(ctx, p)
	if err != nil {
		return nil, err
	}
	layers := []agent.Prompts{org}
	if mode != "" {
		var m Mode
		if _, err := r.loadDocument(ctx, p.org(), modesKind, mode, &m); err != nil { // it may have been removed
			return nil, err
		}
		layers = append(layers, m.Prompts)
	}
	return append(layers, own), nil
}
