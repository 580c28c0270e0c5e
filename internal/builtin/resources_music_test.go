package builtin_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/store/artifact"
)

// musicFake has one artifact, and its transport plays.
type musicFake struct{}

func (musicFake) Artifact(_ context.Context, id string) (hootenanny.ArtifactView, error) {
	if id != "artifact_1" {
		return hootenanny.ArtifactView{}, fault.New(fault.NotFound, "no artifact %s", id)
	}
	return hootenanny.ArtifactView{ID: id, Name: "Reel"}, nil
}

func (musicFake) Artifacts(_ context.Context, q artifact.Query) (hootenanny.ArtifactList, error) {
	if len(q.Tags) > 0 {
		return hootenanny.ArtifactList{}, nil
	}
	return hootenanny.ArtifactList{Artifacts: []hootenanny.ArtifactView{{ID: "artifact_1"}}, Count: 1}, nil
}

func (musicFake) Garden(context.Context, string) (hootenanny.GardenView, error) {
	return hootenanny.GardenView{GardenState: hootenanny.GardenState{State: "playing", Tempo: 90}}, nil
}

func TestMusicResources(t *testing.T) {
	t.Parallel()
	all := builtin.MusicResources(musicFake{})
	for _, tt := range []struct{ uri, variable, want string }{
		{"hoot://artifacts/recent", "", `"artifact_1"`},
		{"hoot://soundfonts", "", `"count"`},
		{"hoot://garden", "", `"playing"`}, {"hoot://garden/{project}", "song", `"playing"`},
		{"hoot://artifact/{id}", "artifact_1", `"Reel"`},
	} {
		found := false
		for _, r := range all {
			if r.URI != tt.uri {
				continue
			}
			found = true
			text, err := r.Read(t.Context(), tt.variable)
			if err != nil || !json.Valid([]byte(text)) || !strings.Contains(text, tt.want) {
				t.Errorf("%s: %s, %v; want %s", tt.uri, text, err, tt.want)
			}
		}
		if !found {
			t.Errorf("there is no %s", tt.uri)
		}
	}
	for _, r := range all {
		if r.URI == "hoot://artifact/{id}" {
			if _, err := r.Read(t.Context(), "artifact_2"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("an unknown artifact: %v", err)
			}
		}
	}
}
