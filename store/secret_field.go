package store

import "strings"

// maxSecrets is how many secrets a group may use. All of them go to its agents in one message.
const maxSecrets = 40

// ownVariables is how the environment variables begin that the agent sets itself.
const ownVariables = "LEASEHOLD_"

// secretsField is the mapping of environment variables to secrets.
var secretsField = Field{
	Path: "secrets", Type: "map of strings", Default: "none", Rule: "SEC-6",
	Allowed: "at most 40 variables named like C identifiers, none of them one of vars or beginning " +
		"with LEASEHOLD_, each with the name of a secret: " + SecretNames,
	Doc: "Which secrets the workload, its drain hook and its exec checks find in their environment: " +
		"DB_PASSWORD: db-password. The values are set with leasehold secret set. A new value reaches a workload at its " +
		"next start.",
	value: func(g *Group) any { return g.Secrets },
	ok: func(g *Group) bool {
		for variable, name := range g.Secrets {
			_, taken := g.Vars[variable]
			if taken || !varForm.MatchString(variable) || strings.HasPrefix(variable, ownVariables) ||
				!IsSecretName(name) {
				return false
			}
		}
		return len(g.Secrets) <= maxSecrets
	},
}
