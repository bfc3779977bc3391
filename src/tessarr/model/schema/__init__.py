"""JSON Schemas of models, for validators in any language: `schema` of whole nodes, `extension_points` of their parts."""
