package registry

// Server is a server.json.
type Server struct {
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	WebsiteURL  string      `json:"websiteUrl"`
	Packages    []Package   `json:"packages"`
	Remotes     []Transport `json:"remotes"`
}

// Package is a package that starts the server.
type Package struct {
	RegistryType         string     `json:"registryType"` // npm, pypi, oci, nuget, mcpb or cargo
	Identifier           string     `json:"identifier"`
	Version              string     `json:"version"`
	RuntimeHint          string     `json:"runtimeHint"`
	RuntimeArguments     []Argument `json:"runtimeArguments"`
	PackageArguments     []Argument `json:"packageArguments"`
	EnvironmentVariables []Variable `json:"environmentVariables"`
	Transport            Transport  `json:"transport"`
}

// Transport is how a server is reached.
type Transport struct {
	Type      string           `json:"type"` // stdio, streamable-http or sse
	URL       string           `json:"url"`
	Headers   []Variable       `json:"headers"`
	Variables map[string]Input `json:"variables"`
}

// Input is a value that is fixed, or that a person gives.
type Input struct {
	Value       string           `json:"value"` // fixed; {x} is a variable
	Default     string           `json:"default"`
	Description string           `json:"description"`
	IsRequired  bool             `json:"isRequired"`
	IsSecret    bool             `json:"isSecret"`
	Choices     []string         `json:"choices"`
	Variables   map[string]Input `json:"variables"`
}

// Variable is an environment variable or a header.
type Variable struct {
	Input
	Name string `json:"name"`
}

// Argument is an argument of a command.
type Argument struct {
	Input
	Type      string `json:"type"` // positional or named
	Name      string `json:"name"` // with its dashes
	ValueHint string `json:"valueHint"`
}
