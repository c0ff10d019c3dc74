package providerfile

import (
	"log/slog"

	"github.com/leasehold/leasehold/coordinator/query/source"
)

// metricKinds are the kinds of external metric that the file may name, each with a function that
// opens one from its settings.
var metricKinds = map[string]func(settings []byte, log *slog.Logger) (source.Source, error){
	"exec": func(settings []byte, log *slog.Logger) (source.Source, error) {
		var c source.ProgramConfig
		if err := Decode(settings, &c); err != nil {
			return nil, err
		}
		c.Logger = log
		return source.NewProgram(c)
	},
	"http": func(settings []byte, _ *slog.Logger) (source.Source, error) {
		var c source.HTTPConfig
		if err := Decode(settings, &c); err != nil {
			return nil, err
		}
		return source.NewHTTP(c)
	},
	"prometheus": func(settings []byte, _ *slog.Logger) (source.Source, error) {
		var c source.PrometheusConfig
		if err := Decode(settings, &c); err != nil {
			return nil, err
		}
		return source.NewPrometheus(c)
	},
}

// OpenMetrics opens the external metrics that a file names, if any. It queries nothing.
func (k Kinds) OpenMetrics(path string, log *slog.Logger) (map[string]source.Source, error) {
	f, err := k.readFile(path)
	if err != nil {
		return nil, err
	}
	by := map[string]source.Source{}
	for _, i := range f.metrics {
		if by[i.Name], err = metricKinds[i.Kind](i.settings, log.With("metric", i.Name)); err != nil {
			return nil, i.in("metrics", err)
		}
		log.Info("metric opened", "metric", i.Name, "kind", i.Kind)
	}
	return by, nil
}
