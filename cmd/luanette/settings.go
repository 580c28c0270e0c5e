package main

import "github.com/luanette/luanette/internal/config"

// settingFlags are the flags that every command reading the configuration has.
// A pointer that stays nil was not given, so that the file and the environment
// decide.
type settingFlags struct {
	Config       string  `short:"c" type:"path" placeholder:"FILE" help:"Configuration file (default: ./luanette.toml, then the one in the configuration folder)."`
	Data         *string `type:"path" placeholder:"DIR" help:"Folder for all stored data."`
	Database     *string `placeholder:"URL" help:"Where the store is: sqlite:PATH or postgres://USER@HOST/DATABASE."`
	LogLevel     *string `placeholder:"LEVEL" help:"How much to log: debug, info, warn or error."`
	LogFormat    *string `placeholder:"FORMAT" help:"Log format: text or json."`
	OTLPEndpoint *string `name:"otlp-endpoint" placeholder:"HOST:PORT" help:"Collector to send traces, metrics and logs to."`

	Change func(*config.Config) `kong:"-"` // what the command changes in the configuration
}

// load reads the configuration, and says which parts of it are not trusted. Flags that were
// given take precedence.
func (f *settingFlags) load(proc *process, more map[string]*string) (*config.Loaded, error) {
	loaded, err := f.loadQuietly(proc, more)
	if err == nil {
		warnUntrusted(proc, loaded)
	}
	return loaded, err
}

func (f *settingFlags) loadQuietly(proc *process, more map[string]*string) (*config.Loaded, error) {
	flags := map[string]string{}
	given := map[string]*string{
		"data": f.Data, "database": f.Database,
		"log.level": f.LogLevel, "log.format": f.LogFormat,
		"telemetry.otlp_endpoint": f.OTLPEndpoint,
	}
	for _, set := range []map[string]*string{given, more} {
		for key, value := range set {
			if value != nil {
				flags[key] = *value
			}
		}
	}
	return f.read(proc, flags)
}

// read reads the configuration.
func (f *settingFlags) read(proc *process, flags map[string]string) (*config.Loaded, error) {
	return config.Load(config.Sources{File: f.Config, Env: proc.Env, Flags: flags, Change: f.Change})
}

// serverFlag is the address of a running server.
type serverFlag struct {
	Server string `short:"s" placeholder:"URL" help:"The server to connect to (default: the address in the configuration, usually http://127.0.0.1:8081)."`
}

// address returns the server's address: that of the flag, or of the configuration.
func (f *serverFlag) address(proc *process, settings *settingFlags) (string, error) {
	if f.Server != "" {
		return f.Server, nil
	}
	loaded, err := settings.load(proc, nil)
	if err != nil {
		return "", err
	}
	return loaded.Address(), nil
}
