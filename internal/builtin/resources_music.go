package builtin

import (
	"context"

	"github.com/luanette/luanette/internal/music/hootenanny"
)

// Music is the readable part of the music backend.
type Music interface {
	Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error)
	Artifacts(ctx context.Context, q hootenanny.Search) (hootenanny.ArtifactList, error)
	Garden(ctx context.Context, project string) (hootenanny.GardenView, error)
}

// MusicResources makes the resources for artifacts and the transport.
func MusicResources(m Music) []Resource {
	const mime = "application/json"
	list := func(q hootenanny.Search) func(context.Context, string) (string, error) {
		return func(ctx context.Context, _ string) (string, error) {
			found, err := m.Artifacts(ctx, q)
			if err != nil {
				return "", err
			}
			return asJSON(found)
		}
	}
	timeline := func(ctx context.Context, project string) (string, error) {
		garden, err := m.Garden(ctx, project)
		if err != nil {
			return "", err
		}
		return asJSON(garden)
	}
	return []Resource{
		{URI: "hoot://artifacts/recent", Name: "recent-artifacts", Title: "Recent artifacts", MIMEType: mime,
			Description: "The newest 50 artifacts with their tags and where their contents are", Read: list(hootenanny.Search{Limit: 50})},
		{URI: "hoot://soundfonts", Name: "soundfonts", Title: "SoundFonts", MIMEType: mime,
			Description: "The artifacts that are SoundFonts", Read: list(hootenanny.Search{Tags: []string{"type:soundfont"}, Limit: 200})},
		{URI: "hoot://garden", Name: "garden", Title: "The garden", MIMEType: mime, Description: "The transport and the timeline", Read: timeline},
		{URI: "hoot://garden/{project}", Name: "garden-project", Title: "A project", MIMEType: mime, Description: "The transport and the timeline of one project", Read: timeline},
		{URI: "hoot://artifact/{id}", Name: "artifact", Title: "An artifact", MIMEType: mime, Description: "All metadata of one artifact",
			Read: func(ctx context.Context, id string) (string, error) {
				a, err := m.Artifact(ctx, id)
				if err != nil {
					return "", err
				}
				return asJSON(a)
			}},
	}
}
