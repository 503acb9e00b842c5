"""What environments of others have in common: actions in their own words, pictures in any form, scores by reward."""
