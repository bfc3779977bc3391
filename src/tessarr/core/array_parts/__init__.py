"""The methods and properties of `Array` by topic."""
