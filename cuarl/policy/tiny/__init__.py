"""The shipped tiny vision-language model."""
