package providerfile

import "github.com/leasehold/leasehold/coordinator/webhook"

// Webhooks returns the webhooks that a file names, if any. It sends nothing.
func (k Kinds) Webhooks(path string) ([]*webhook.Hook, error) {
	f, err := k.readFile(path)
	if err != nil {
		return nil, err
	}
	hooks := make([]*webhook.Hook, 0, len(f.webhooks))
	for _, i := range f.webhooks {
		var c webhook.Config
		if err := Decode(i.settings, &c); err != nil {
			return nil, i.in("webhooks", err)
		}
		hook, err := webhook.New(i.Name, i.Kind, c)
		if err != nil {
			return nil, i.in("webhooks", err)
		}
		hooks = append(hooks, hook)
	}
	return hooks, nil
}
