"""Make JSON Schemas of models, for validators in any language: `schema` of nodes, `extension_points` of their parts."""
