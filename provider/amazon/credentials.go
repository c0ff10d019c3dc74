package amazon

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/leasehold/leasehold/provider"
)

// Secrets are names of the shard's secrets.
type Secrets struct {
	AccessKeyID     string `json:"access_key_id"`
	SecretAccessKey string `json:"secret_access_key"`
	SessionToken    string `json:"session_token,omitempty"`
}

// Credentials are those that the secrets hold, read each time, so that a changed secret takes
// effect at once. Without secrets the SDK looks for some: in the environment, its files, the role
// of the machine.
func Credentials(ctx context.Context, region string, names *Secrets, lookup func(name string) (string, error),
) (aws.CredentialsProvider, error) {
	if names != nil {
		return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return names.read(lookup) }), nil
	}
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, fmt.Errorf("read the SDK's configuration: %w", err)
	}
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		found, err := loaded.Credentials.Retrieve(ctx)
		if err != nil && ctx.Err() == nil {
			err = &provider.Error{Kind: provider.Credentials, Scope: "region " + region, Message: err.Error()}
		}
		return found, err
	}), nil
}

func (names Secrets) read(lookup func(name string) (string, error)) (c aws.Credentials, err error) {
	for _, s := range []struct {
		name string
		to   *string
	}{
		{names.AccessKeyID, &c.AccessKeyID},
		{names.SecretAccessKey, &c.SecretAccessKey},
		{names.SessionToken, &c.SessionToken},
	} {
		if s.name == "" {
			continue
		}
		if *s.to, err = lookup(s.name); err != nil {
			return c, &provider.Error{Kind: provider.Credentials, Scope: s.name, Message: err.Error()}
		}
	}
	return c, nil
}
