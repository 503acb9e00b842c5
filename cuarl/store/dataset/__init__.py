"""Episodes as a data set: Parquet files with pictures in them, for Hugging Face ``datasets``, and back."""
