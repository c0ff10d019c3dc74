package providerfile

import (
	"log/slog"

	"github.com/leasehold/leasehold/coordinator/authority"
)

// authorityKinds are the kinds of authority that the file may name, each with a function that opens
// one from its settings. certificates is the directory of the shard's own authorities.
var authorityKinds = map[string]func(settings []byte, certificates string, log *slog.Logger) (authority.Authority,
	error){
	"exec": func(settings []byte, _ string, log *slog.Logger) (authority.Authority, error) {
		var c authority.ProgramConfig
		if err := Decode(settings, &c); err != nil {
			return nil, err
		}
		c.Logger = log
		return authority.NewProgram(c)
	},
	"own": func(settings []byte, certificates string, log *slog.Logger) (authority.Authority, error) {
		var c authority.OwnConfig
		if err := Decode(settings, &c); err != nil {
			return nil, err
		}
		return authority.NewOwn(c, certificates, log)
	},
}

// OpenAuthorities opens the authorities for workloads' certificates that a file names, if any. It
// runs no program: the authorities do later.
func (k Kinds) OpenAuthorities(path, certificates string, log *slog.Logger) (map[string]authority.Authority, error) {
	f, err := k.readFile(path)
	if err != nil {
		return nil, err
	}
	by := map[string]authority.Authority{}
	for _, i := range f.authorities {
		if by[i.Name], err = authorityKinds[i.Kind](i.settings, certificates, log.With("authority",
			i.Name)); err != nil {
			return nil, i.in("authorities", err)
		}
		log.Info("authority opened", "authority", i.Name, "kind", i.Kind)
	}
	return by, nil
}
