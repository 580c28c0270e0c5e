package setup

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/config"
)

// Settings is what the page shows of the settings that it can change.
type Settings struct {
	File       string               `json:"file"`
	Changeable bool                 `json:"changeable"` // by our page, from where it was asked
	Settings   []config.LiveSetting `json:"settings"`
	Lines      map[string]int       `json:"lines"` // of the file, by key
}

func (s *Service) settings(r *http.Request) (any, error) {
	list, lines := s.Current().LiveSettings()
	return Settings{s.Current().File, s.offersPrograms(r), list, lines}, nil
}

// Changed is what a changed setting was before: null if the file did not have it.
type Changed struct {
	Before map[string]json.RawMessage `json:"before"`
}

func (s *Service) changeSettings(r *http.Request) (any, error) {
	var body struct {
		Values map[string]json.RawMessage `json:"values"`
	}
	if err := httpjson.Read(r, &body); err != nil {
		return nil, err
	}
	if len(body.Values) == 0 {
		return nil, fault.New(fault.InvalidParams, "values is empty").WithHint("name the settings to change, with their values")
	}
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	shown, _ := s.Current().LiveSettings()
	for key := range body.Values {
		at := slices.IndexFunc(shown, func(l config.LiveSetting) bool { return l.Key == key })
		if at < 0 {
			return nil, fault.New(fault.InvalidParams, "%s cannot be changed here", key).WithHint("change it in the configuration file")
		}
		if shown[at].Fixed != "" {
			return nil, fault.New(fault.Conflict, "%s is set by the %s, which takes precedence over the file", key, shown[at].Fixed).WithHint("change it there")
		}
	}
	before, err := config.SetLive(r.Context(), s.Sources, body.Values)
	if err != nil {
		return nil, err
	}
	s.Audit(r.Context(), "config.change", s.Current().File, asJSON(body.Values))
	s.Reload(r.Context())
	return Changed{before}, nil
}

// addRule puts a policy rule before the others.
func (s *Service) addRule(r *http.Request) (any, error) { return s.changeRule(r, config.AddRule) }

// removeRule removes a policy rule.
func (s *Service) removeRule(r *http.Request) (any, error) { return s.changeRule(r, config.RemoveRule) }

func (s *Service) changeRule(r *http.Request, change func(config.Sources, config.PolicyRule) error) (any, error) {
	var rule config.PolicyRule
	if err := httpjson.Read(r, &rule); err != nil {
		return nil, err
	}
	if rule.Tool == "" {
		return nil, fault.New(fault.InvalidParams, "tool is empty").WithHint("name a tool, as namespace.tool")
	}
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	if err := change(s.Sources, rule); err != nil {
		return nil, err
	}
	s.Reload(r.Context()) // it records the change
	return struct{}{}, nil
}

// Models is what the page shows when it sets a model up.
type Models struct {
	Changeable bool         `json:"changeable"`
	Local      []LocalModel `json:"local"`
}

// LocalModel is a program on this machine that answers as OpenAI's API does.
type LocalModel struct {
	Name    string   `json:"name"`
	BaseURL string   `json:"base_url"`
	Models  []string `json:"models"`
}

// localEndpoints are where programs that run models listen, unless they are told otherwise.
var localEndpoints = []LocalModel{
	{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1"},
	{Name: "LM Studio", BaseURL: "http://127.0.0.1:1234/v1"},
	{Name: "llama.cpp", BaseURL: "http://127.0.0.1:8080/v1"},
	{Name: "vLLM", BaseURL: "http://127.0.0.1:8000/v1"},
}

// lookTime is how long a program on this machine has to say which models it has.
const lookTime = 400 * time.Millisecond

func (s *Service) models(r *http.Request) (any, error) {
	found := Models{Changeable: s.offersPrograms(r), Local: []LocalModel{}}
	if !found.Changeable { // only the owner of this machine is told what runs on it
		return found, nil
	}
	ctx, stop := context.WithTimeout(r.Context(), lookTime)
	defer stop()
	all := slices.Clone(localEndpoints)
	var asked sync.WaitGroup
	for i := range all {
		asked.Go(func() { all[i].Models = modelsAt(ctx, all[i].BaseURL) })
	}
	asked.Wait()
	found.Local = slices.DeleteFunc(all, func(m LocalModel) bool { return len(m.Models) == 0 })
	return found, nil
}

// modelsAt are the names of the models of an endpoint; none if there is no such endpoint.
func modelsAt(ctx context.Context, base string) (names []string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxBody)).Decode(&list) != nil {
		return nil
	}
	for _, m := range list.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	return names
}

// setModel asks a model for a word, and makes it the chat's.
func (s *Service) setModel(r *http.Request) (any, error) {
	var chosen config.ChosenModel
	if err := httpjson.Read(r, &chosen); err != nil {
		return nil, err
	}
	if chosen.Provider == "" {
		return nil, fault.New(fault.InvalidParams, "provider is empty").WithHint("use anthropic or openai")
	}
	if err := s.mayAddPrograms(r); err != nil {
		return nil, err
	}
	if err := s.TryModel(r.Context(), &chosen); err != nil { // that its key is wrong says nothing of whoever asks us
		return nil, fault.Wrap(fault.InvalidParams, err, "the model does not answer").WithHint("%s", fault.HintOf(err))
	}
	if err := config.SetModel(r.Context(), s.Sources, s.Current().Data, &chosen); err != nil {
		return nil, err
	}
	s.Audit(r.Context(), "config.change", s.Current().File, asJSON([]string{"chat.provider", "chat.model", "chat.base_url", "chat.key"}))
	s.Reload(r.Context())
	return struct{}{}, nil
}
