"""The algebra that a search decides by: abstract expressions, their normal forms, values in finite fields."""
